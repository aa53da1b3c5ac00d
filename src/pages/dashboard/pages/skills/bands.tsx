/** Lower limits, ascending, with labels; one for each colour of style.css. */
type Bands = readonly (readonly [from: number, name: string])[];

/** In the last band, a skill can count as mastered. */
export const masteryBands: Bands = [
  [0, 'below 20 %'],
  [0.2, '20 to 40 %'],
  [0.4, '40 to 60 %'],
  [0.6, '60 to 80 %'],
  [0.8, '80 to 95 %'],
  [0.95, '95 % or more'],
];

/** From 75 % on, a skill can count as mastered. */
export const accuracyBands: Bands = [
  [0, 'below 40 %'],
  [0.4, '40 to 50 %'],
  [0.5, '50 to 60 %'],
  [0.6, '60 to 75 %'],
  [0.75, '75 to 85 %'],
  [0.85, '85 % or more'],
];

export const bandColors = masteryBands.map((_, band) => `var(--heat-${band})`);
export const findBand = (bands: Bands, share: number): number =>
  bands.findLastIndex(([from]) => share >= from);

export const BandLegend = ({ bands }: { readonly bands: Bands }) => (
  <ul class="legend">
    {bands.map(([from, name], band) => (
      <li key={from}>
        <Swatch fill={bandColors[band]} />
        {name}
      </li>
    ))}
    <li>
      <Swatch />
      no answers
    </li>
  </ul>
);

/** Without `fill`, draws the frame of a missing value. */
const Swatch = ({ fill }: { fill?: string | undefined }) => (
  <svg width="18" height="12" aria-hidden="true">
    <rect x="0.5" y="0.5" width="17" height="11" {...(fill ? { fill } : { class: 'heat-none' })} />
  </svg>
);
