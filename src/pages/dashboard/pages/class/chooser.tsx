import { useState } from 'preact/hooks';
import { pluralize } from '../../base/format.js';
import { navigate } from '../../base/route.js';
import { Button } from '../../parts/button.jsx';
import { Dialog } from '../../parts/dialog.jsx';
import { joinIds, maxLearners, parseFileIds, parsePastedIds, splitIds } from './learner-ids.js';
import type { ClassSelection } from './load-class.js';

export interface ChooserProps {
  readonly selection: ClassSelection;
  readonly view: Readonly<Record<string, string | undefined>>;
}

export function Chooser({ selection, view }: ChooserProps) {
  const [isListOpen, setListOpen] = useState(false);
  const submit = (event: Event): void => {
    event.preventDefault();
    const prefix = new FormData(event.currentTarget as HTMLFormElement).get('prefix');
    navigate('class', [], { ...view, prefix: String(prefix ?? '') });
  };
  return (
    <div class="row">
      <form class="row" onSubmit={submit}>
        <label for="prefix">Learner id starts with</label>
        <input
          key={selection.prefix}
          {...{ id: 'prefix', name: 'prefix', type: 'search', maxLength: 128, placeholder: 'all learners' }}
          {...{ autocomplete: 'off', spellcheck: false, defaultValue: selection.prefix ?? '' }}
        />
        <button type="submit">Show</button>
      </form>
      <Button onClick={() => setListOpen(true)}>
        {selection.ids === undefined ? 'Paste learner ids' : 'Edit learner ids'}
      </Button>
      {isListOpen && <ListDialog selection={selection} view={view} onClose={() => setListOpen(false)} />}
    </div>
  );
}

/** The list is part of the URL, which browsers limit. */
const maxCharacters = 40_000;

function ListDialog({ selection, view, onClose }: ChooserProps & { readonly onClose: () => void }) {
  const [text, setText] = useState(() =>
    formatIds(selection.ids === undefined ? [] : splitIds(selection.ids)),
  );
  const ids = parsePastedIds(text);
  const problem = findProblem(ids);
  const submit = (event: Event): void => {
    event.preventDefault();
    navigate('class', [], { ...view, ids: joinIds(ids) });
    onClose();
  };
  const readFile = async (file: File | undefined): Promise<void> => {
    if (file !== undefined) setText(formatIds(parseFileIds(await file.text())));
  };
  return (
    <Dialog title="Choose learners" onClose={onClose}>
      <form class="field" onSubmit={submit}>
        <label for="ids">Learner ids, separated by line breaks or commas</label>
        <textarea
          {...{ id: 'ids', rows: 10, value: text, spellcheck: false }}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <label for="file">Or upload a CSV file with the ids in its first column</label>
        <input
          {...{ id: 'file', type: 'file', accept: '.csv,.tsv,.txt,text/csv,text/plain' }}
          onChange={(event) => readFile(event.currentTarget.files?.[0])}
        />
        <p class="soft" role="status">
          {problem ??
            `${pluralize(ids.length, 'learner')}. The page URL contains the list. The service does not store it.`}
        </p>
        <div class="row">
          <button type="submit" class="primary" disabled={ids.length === 0 || problem !== null}>
            Show learners
          </button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  );
}

function findProblem(ids: readonly string[]): string | null {
  if (ids.length > maxLearners)
    return `${pluralize(ids.length, 'learner')}, but the limit is ${maxLearners}. Remove some ids.`;
  if (joinIds(ids).length > maxCharacters) return 'The list is too long for a URL. Remove some ids.';
  return null;
}

/** Inverse of `parsePastedIds`. */
const formatIds = (ids: readonly string[]): string =>
  ids.map((id) => (/[",]/.test(id) ? `"${id.replaceAll('"', '""')}"` : id)).join('\n');
