import type { ComponentChildren } from 'preact';

interface TextFieldProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (text: string) => void;
  readonly maxLength: number;
  readonly required?: boolean;
  readonly placeholder?: string;
  readonly pattern?: string;
  readonly title?: string;
  /** Id of the suggestions. */
  readonly list?: string;
  readonly autocomplete?: 'off';
}

export const TextField = ({ label, onChange, ...input }: TextFieldProps) => (
  <label class="field">
    {label}
    <input type="text" {...input} onInput={(event) => onChange(event.currentTarget.value)} />
  </label>
);

interface CheckFieldProps {
  readonly label: ComponentChildren;
  readonly checked: boolean;
  readonly disabled?: boolean;
  readonly onChange: (isChecked: boolean) => void;
}

export const CheckField = ({ label, onChange, ...input }: CheckFieldProps) => (
  <label class="check">
    <input {...input} type="checkbox" onChange={(event) => onChange(event.currentTarget.checked)} /> {label}
  </label>
);
