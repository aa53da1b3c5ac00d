/** Bands of mastery with their colours: warm for what is not known yet, cold for what is. */

/** From where each begins, with what it says; the last is what counts as mastered. */
const bands: readonly (readonly [from: number, name: string])[] = [
  [0, 'below 20 %'],
  [0.2, '20 to 40 %'],
  [0.4, '40 to 60 %'],
  [0.6, '60 to 80 %'],
  [0.8, '80 to 95 %'],
  [0.95, '95 % or more'],
];

export const bandFrom = bands.map(([from]) => from);
export const bandColors = bands.map((_, band) => `var(--heat-${band})`);
export const bandOf = (mastery: number): number => bandFrom.findLastIndex((from) => mastery >= from);

/** What the colours say. */
export const Scale = () => (
  <ul class="legend">
    {bands.map(([from, name], band) => (
      <li key={from}>
        <Swatch look={`heat-${band}`} />
        {name}
      </li>
    ))}
    <li>
      <Swatch look="heat-none" />
      no answers
    </li>
  </ul>
);

const Swatch = ({ look }: { look: string }) => (
  <svg width="18" height="12" aria-hidden="true">
    <rect x="0.5" y="0.5" width="17" height="11" class={look} />
  </svg>
);
