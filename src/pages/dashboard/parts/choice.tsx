import { look } from '../base/route.js';

interface ChoiceProps {
  readonly label: string;
  /** Query parameter of the URL. */
  readonly name: string;
  readonly value: string | number;
  readonly options: readonly (readonly [value: string | number, text: string | number])[];
  readonly class?: string;
}

export const Choice = ({ label, name, value, options, class: className }: ChoiceProps) => (
  <label class={className}>
    {label}{' '}
    <select value={value} onChange={(event) => look({ [name]: event.currentTarget.value })}>
      {options.map(([option, text]) => (
        <option key={option} value={option}>
          {text}
        </option>
      ))}
    </select>
  </label>
);
