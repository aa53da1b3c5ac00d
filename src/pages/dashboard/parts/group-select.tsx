import { useId, useMemo, useState } from 'preact/hooks';
import { pluralize } from '../base/format.js';
import type { ListedGroup } from '../base/groups.js';

interface GroupSelectProps {
  readonly groups: readonly ListedGroup[];
  readonly groupId: string | undefined;
  readonly onSelect: (groupId: string) => void;
}

/** A text field with suggestions: a tenant may have 10,000 groups. */
export function GroupSelect({ groups, groupId, onSelect }: GroupSelectProps) {
  const id = useId();
  const labels = useMemo(() => labelGroups(groups), [groups]);
  const current = groups.findIndex(({ group_id }) => group_id === groupId);
  // While the user types; null: shows the current class.
  const [text, setText] = useState<string | null>(null);
  const select = (chosen: string): void => {
    setText(null);
    onSelect(chosen);
  };
  const change = (typed: string): void => {
    const chosen = groups[labels.indexOf(typed)] ?? groups.find(({ group_id }) => group_id === typed);
    if (chosen === undefined) setText(typed);
    else select(chosen.group_id);
  };
  /** The list may be too short for this group. */
  const selectUnlisted = ({ key }: KeyboardEvent): void => {
    const typed = text?.trim() ?? '';
    const isListed = labels.some((label) => label.toLowerCase().includes(typed.toLowerCase()));
    if (key === 'Enter' && typed !== '' && !isListed) select(typed);
  };
  return (
    <div class="group-select">
      <label for={`${id}-text`}>Class</label>{' '}
      <input
        {...{ id: `${id}-text`, list: id, type: 'text', autocomplete: 'off', spellcheck: false }}
        placeholder={`Search ${pluralize(groups.length, 'group')}`}
        value={text ?? labels[current] ?? ''}
        // An empty field shows all suggestions.
        onFocus={() => setText('')}
        onBlur={() => setText(null)}
        onInput={(event) => change(event.currentTarget.value)}
        onKeyDown={selectUnlisted}
      />
      <datalist id={id}>
        {groups.map(({ group_id, kind, members }, i) => (
          <option key={group_id} value={labels[i]}>
            {kind}, {pluralize(members, 'learner')}
          </option>
        ))}
      </datalist>
    </div>
  );
}

/** The id follows a name that is not unique. */
function labelGroups(groups: readonly ListedGroup[]): readonly string[] {
  const names = groups.map(({ name }) => name);
  return groups.map(({ name, group_id }) =>
    names.indexOf(name) === names.lastIndexOf(name) ? name : `${name} (${group_id})`,
  );
}
