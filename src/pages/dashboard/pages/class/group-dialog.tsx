import { useState } from 'preact/hooks';
import type { Group } from '../../../../client/types.js';
import { useAction } from '../../base/action.js';
import { pluralize } from '../../base/format.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { ConfirmDialog, Dialog } from '../../parts/dialog.jsx';
import { ErrorNote } from '../../parts/loaded.jsx';
import { IdsField, useIdsInput } from './ids-field.jsx';

interface GroupDialogProps {
  /** Null for a new class. */
  readonly group: Group | null;
  readonly userIds: readonly string[];
  readonly onSaved: (group: Group) => void;
  readonly onDeleted?: () => void;
  readonly onClose: () => void;
}

const maxMembers = 2000;

export function GroupDialog({ group, userIds, onSaved, onDeleted, onClose }: GroupDialogProps) {
  const { api } = useViewer();
  const [name, setName] = useState(group?.name ?? '');
  const [kind, setKind] = useState(group?.kind ?? 'class');
  const [isDeleting, setDeleting] = useState(false);
  const input = useIdsInput(userIds, maxMembers);
  const save = useAction(async () => {
    const setting = { name: name.trim(), kind: kind.trim(), user_ids: input.ids };
    const parent_group_id = group?.parent_group_id ?? null;
    onSaved(await api.setGroup(group?.group_id ?? createGroupId(name), { ...setting, parent_group_id }));
  });
  const submit = (event: Event): void => {
    event.preventDefault();
    void save.run().then((isSaved) => isSaved && onClose());
  };
  if (group !== null && isDeleting)
    return (
      <ConfirmDialog
        {...{ title: `Delete ${group.name}?`, confirmLabel: 'Delete class', isDangerous: true, onClose }}
        onConfirm={() => api.deleteGroup(group.group_id).then(onDeleted)}
      >
        <p>
          {pluralize(group.user_ids.length, 'learner')} and their answers stay. Only the group is deleted.
        </p>
      </ConfirmDialog>
    );
  return (
    <Dialog title={group === null ? 'Save as class' : 'Edit class'} onClose={onClose}>
      <form class="field" onSubmit={submit}>
        <label for="name">Name</label>
        <input
          {...{ id: 'name', required: true, maxLength: 128, autocomplete: 'off', value: name }}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <label for="kind">Kind, for example class, grade or school</label>
        <input
          {...{ id: 'kind', required: true, maxLength: 32, autocomplete: 'off', value: kind }}
          onInput={(event) => setKind(event.currentTarget.value)}
        />
        <IdsField input={input} note="All keys of the tenant see the class." />
        {save.error !== null && <ErrorNote error={save.error} />}
        <div class="row">
          <button type="submit" class="primary" disabled={save.isBusy || input.problem !== null}>
            Save
          </button>
          <Button onClick={onClose}>Cancel</Button>
          {group !== null && (
            <Button class="danger" onClick={() => setDeleting(true)}>
              Delete…
            </Button>
          )}
        </div>
      </form>
    </Dialog>
  );
}

/** Readable, and different from the ids of other groups with this name. */
const createGroupId = (name: string): string =>
  `${name
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, '-')
    .slice(0, 64)}-${Date.now().toString(36)}`;
