import { updateQuery } from '../base/route.js';

interface QuerySelectProps {
  readonly label: string;
  /** Query parameter of the URL. */
  readonly parameter: string;
  readonly value: string | number;
  readonly options: readonly (readonly [value: string | number, text: string | number])[];
  readonly class?: string;
}

export const QuerySelect = ({ label, parameter, value, options, class: className }: QuerySelectProps) => (
  <label class={className}>
    {label}{' '}
    <select value={value} onChange={(event) => updateQuery({ [parameter]: event.currentTarget.value })}>
      {options.map(([option, text]) => (
        <option key={option} value={option}>
          {text}
        </option>
      ))}
    </select>
  </label>
);
