/** State of the current history entry, which survives a reload and the back button. */
import { useState } from 'preact/hooks';

type EntryState = Readonly<Record<string, unknown>> | null;

export const readEntryState = (name: string): unknown => (history.state as EntryState)?.[name];

export const writeEntryState = (name: string, value: unknown): void =>
  history.replaceState({ ...(history.state as EntryState), [name]: value }, '');

/** Like `useState`. @param name unique on the page */
export function useEntryState<Value>(name: string, initial: Value) {
  const [value, setValue] = useState(() => (readEntryState(name) ?? initial) as Value);
  const set = (changed: Value): void => {
    writeEntryState(name, changed);
    setValue(changed);
  };
  return [value, set] as const;
}
