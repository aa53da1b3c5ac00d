import { useState } from 'preact/hooks';
import { pluralize } from '../../base/format.js';
import { parseFileIds, parsePastedIds } from './learner-ids.js';

export interface IdsInput {
  readonly text: string;
  readonly setText: (text: string) => void;
  readonly ids: readonly string[];
  /** Null: the list is valid. */
  readonly problem: string | null;
}

export function useIdsInput(initial: readonly string[], maxIds: number): IdsInput {
  const [text, setText] = useState(() => formatIds(initial));
  const ids = parsePastedIds(text);
  const problem =
    ids.length > maxIds
      ? `${pluralize(ids.length, 'learner')}, but the limit is ${maxIds}. Remove some ids.`
      : null;
  return { text, setText, ids, problem };
}

/** Inverse of `parsePastedIds`. */
const formatIds = (ids: readonly string[]): string =>
  ids.map((id) => (/[",]/.test(id) ? `"${id.replaceAll('"', '""')}"` : id)).join('\n');

interface IdsFieldProps {
  readonly input: IdsInput;
  /** Shown if the list is valid. */
  readonly note: string;
}

export function IdsField({ input: { text, setText, ids, problem }, note }: IdsFieldProps) {
  const readFile = async (file: File | undefined): Promise<void> => {
    if (file !== undefined) setText(formatIds(parseFileIds(await file.text())));
  };
  return (
    <>
      <label class="field">
        Learner ids, separated by line breaks or commas
        <textarea
          {...{ rows: 8, value: text, spellcheck: false }}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <label class="field">
        Or upload a CSV file with the ids in its first column
        <input
          {...{ type: 'file', accept: '.csv,.tsv,.txt,text/csv,text/plain' }}
          onChange={(event) => readFile(event.currentTarget.files?.[0])}
        />
      </label>
      <p class="soft" role="status">
        {problem ?? `${pluralize(ids.length, 'learner')}. ${note}`}
      </p>
    </>
  );
}
