import { useState } from 'preact/hooks';
import { type ListedGroup, maxLearners } from '../../base/groups.js';
import { navigate, type Query, type Route } from '../../base/route.js';
import { Button } from '../../parts/button.jsx';
import { FormDialog } from '../../parts/dialog.jsx';
import { GroupSelect } from '../../parts/group-select.jsx';
import { IdsField, useIdsInput } from './ids-field.jsx';
import { joinIds, splitIds } from './learner-ids.js';

export interface ChooserProps {
  readonly query: Route['query'];
  /** View options, which stay for other learners. */
  readonly view: Query;
}

export function Chooser({ groups, query, view }: ChooserProps & { readonly groups: readonly ListedGroup[] }) {
  const [isListOpen, setListOpen] = useState(false);
  const submit = (event: Event): void => {
    event.preventDefault();
    const prefix = new FormData(event.currentTarget as HTMLFormElement).get('prefix');
    navigate('class', [], { ...view, prefix: String(prefix ?? '') });
  };
  return (
    <div class="row tools">
      {groups.length > 0 && (
        <GroupSelect
          {...{ groups, groupId: query.group }}
          onSelect={(group) => navigate('class', [], { ...view, group })}
        />
      )}
      <details class="other" open={query.group === undefined}>
        <summary>Other learners</summary>
        <div class="row">
          <form class="row" onSubmit={submit}>
            <label for="prefix">Learner id starts with</label>
            <input
              key={query.prefix}
              {...{ id: 'prefix', name: 'prefix', type: 'search', maxLength: 128, autocomplete: 'off' }}
              {...{ spellcheck: false, placeholder: 'all learners', defaultValue: query.prefix ?? '' }}
            />
            <button type="submit">Show</button>
          </form>
          <Button onClick={() => setListOpen(true)}>
            {query.ids === undefined ? 'Paste learner ids' : 'Edit learner ids'}
          </Button>
        </div>
      </details>
      {isListOpen && <ListDialog {...{ query, view }} onClose={() => setListOpen(false)} />}
    </div>
  );
}

/** The list is part of the URL, which browsers limit. */
const maxCharacters = 40_000;

function ListDialog({ query, view, onClose }: ChooserProps & { readonly onClose: () => void }) {
  const typed = useIdsInput(query.ids === undefined ? [] : splitIds(query.ids), maxLearners);
  const { ids } = typed;
  const isTooLong = joinIds(ids).length > maxCharacters;
  const input = isTooLong ? { ...typed, problem: 'The list is too long for a URL. Remove some ids.' } : typed;
  const show = async (): Promise<boolean> => {
    navigate('class', [], { ...view, ids: joinIds(ids) });
    return true;
  };
  return (
    <FormDialog
      title="Choose learners"
      submitLabel="Show learners"
      isIncomplete={ids.length === 0 || input.problem !== null}
      onSubmit={show}
      onClose={onClose}
    >
      <IdsField input={input} note="The page URL contains the list. The service does not store it." />
    </FormDialog>
  );
}
