import { useState } from 'preact/hooks';
import { plural } from '../../base/format.js';
import { go } from '../../base/route.js';
import { Button } from '../../parts/button.jsx';
import { Dialog } from '../../parts/dialog.jsx';
import { columnIds, idsOf, listOf, mostLearners, pastedIds } from './list.js';
import type { Choice } from './read.js';

export interface ChooserProps {
  readonly choice: Choice;
  readonly view: Readonly<Record<string, string | undefined>>;
}

export function Chooser({ choice, view }: ChooserProps) {
  const [isListOpen, setListOpen] = useState(false);
  const submit = (event: Event): void => {
    event.preventDefault();
    const prefix = new FormData(event.currentTarget as HTMLFormElement).get('prefix');
    go('class', [], { ...view, prefix: String(prefix ?? '') });
  };
  return (
    <div class="row">
      <form class="row" onSubmit={submit}>
        <label for="prefix">Ids that begin with</label>
        <input
          key={choice.prefix}
          {...{ id: 'prefix', name: 'prefix', type: 'search', maxLength: 128, placeholder: 'all learners' }}
          {...{ autocomplete: 'off', spellcheck: false, defaultValue: choice.prefix ?? '' }}
        />
        <button type="submit">Show</button>
      </form>
      <Button onClick={() => setListOpen(true)}>
        {choice.ids === undefined ? 'Give a list' : 'Change the list'}
      </Button>
      {isListOpen && <ListDialog choice={choice} view={view} onClose={() => setListOpen(false)} />}
    </div>
  );
}

/** The list is part of the URL, which browsers limit. */
const mostCharacters = 40_000;

function ListDialog({ choice, view, onClose }: ChooserProps & { readonly onClose: () => void }) {
  const [text, setText] = useState(() => shownList(choice.ids === undefined ? [] : idsOf(choice.ids)));
  const ids = pastedIds(text);
  const problem = problemOf(ids);
  const submit = (event: Event): void => {
    event.preventDefault();
    go('class', [], { ...view, ids: listOf(ids) });
    onClose();
  };
  const read = async (file: File | undefined): Promise<void> => {
    if (file !== undefined) setText(shownList(columnIds(await file.text())));
  };
  return (
    <Dialog title="A list of learners" onClose={onClose}>
      <form class="field" onSubmit={submit}>
        <label for="ids">Ids, one a line or with commas between them</label>
        <textarea
          {...{ id: 'ids', rows: 10, value: text, spellcheck: false }}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <label for="file">Or the first column of a CSV file</label>
        <input
          {...{ id: 'file', type: 'file', accept: '.csv,.tsv,.txt,text/csv,text/plain' }}
          onChange={(event) => read(event.currentTarget.files?.[0])}
        />
        <p class="soft" role="status">
          {problem ?? `${plural(ids.length, 'learner')}. The list stays in this address and is not stored.`}
        </p>
        <div class="row">
          <button type="submit" class="primary" disabled={ids.length === 0 || problem !== null}>
            Show the class
          </button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  );
}

function problemOf(ids: readonly string[]): string | null {
  if (ids.length > mostLearners)
    return `${plural(ids.length, 'learner')}: a class has at most ${mostLearners}.`;
  if (listOf(ids).length > mostCharacters) return 'The ids are too long together for an address: give fewer.';
  return null;
}

/** Inverse of `parsePastedIds`. */
const shownList = (ids: readonly string[]): string =>
  ids.map((id) => (/[",]/.test(id) ? `"${id.replaceAll('"', '""')}"` : id)).join('\n');
