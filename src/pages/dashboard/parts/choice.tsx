import { look } from '../base/route.js';

interface ChoiceProps {
  readonly label: string;
  /** Name of the value in the address. */
  readonly name: string;
  readonly value: string | number;
  readonly options: readonly (readonly [value: string | number, text: string | number])[];
  readonly class?: string;
}

/** A list to choose from. The chosen value is kept in the address. */
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
