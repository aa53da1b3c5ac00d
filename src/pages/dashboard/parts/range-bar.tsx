interface RangeBarProps {
  readonly low: number;
  readonly high: number;
  readonly mark: number;
  readonly title?: string;
}

/** A range and a mark on a scale from 0 to 1. The table cell also has the mark as text. */
export const RangeBar = ({ low, high, mark, title }: RangeBarProps) => (
  <svg
    class="range-bar"
    viewBox="0 0 100 10"
    preserveAspectRatio="none"
    role="img"
    aria-hidden={title === undefined}
  >
    <title>{title}</title>
    <rect class="track" width="100" height="10" rx="2" />
    <rect class="range" x={100 * low} width={Math.max(1, 100 * (high - low))} height="10" />
    <rect class="mark" x={100 * mark - 2} width="4" height="10" />
  </svg>
);
