import { useState } from 'preact/hooks';
import type { Group } from '../../../../client/types.js';
import { pluralize } from '../../base/format.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { ConfirmDialog, FormDialog } from '../../parts/dialog.jsx';
import { TextField } from '../../parts/field.jsx';
import { IdsField, useIdsInput } from './ids-field.jsx';

interface GroupDialogProps {
  /** Null for a new class. */
  readonly group: Group | null;
  readonly userIds: readonly string[];
  readonly onSaved: (group: Group) => void;
  readonly onDeleted: () => void;
  readonly onClose: () => void;
}

const maxMembers = 2000;

export function GroupDialog({ group, userIds, onSaved, onDeleted, onClose }: GroupDialogProps) {
  const { api } = useViewer();
  const [name, setName] = useState(group?.name ?? '');
  const [kind, setKind] = useState(group?.kind ?? 'class');
  const [isDeleting, setDeleting] = useState(false);
  const input = useIdsInput(userIds, maxMembers);
  const save = async (): Promise<boolean> => {
    const setting = { name: name.trim(), kind: kind.trim(), user_ids: input.ids };
    const parent_group_id = group?.parent_group_id ?? null;
    onSaved(await api.setGroup(group?.group_id ?? createGroupId(name), { ...setting, parent_group_id }));
    return true;
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
    <FormDialog
      title={group === null ? 'Save as class' : 'Edit class'}
      submitLabel="Save"
      isIncomplete={input.problem !== null}
      moreActions={
        group !== null && (
          <Button class="danger" onClick={() => setDeleting(true)}>
            Delete…
          </Button>
        )
      }
      onSubmit={save}
      onClose={onClose}
    >
      <TextField label="Name" required maxLength={128} autocomplete="off" value={name} onChange={setName} />
      <TextField
        label="Kind, for example class, grade or school"
        required
        maxLength={32}
        autocomplete="off"
        value={kind}
        onChange={setKind}
      />
      <IdsField input={input} note="All keys of the tenant see the class." />
    </FormDialog>
  );
}

/** Readable, and different from the ids of other groups with this name. */
function createGroupId(name: string): string {
  const words = name.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, '-');
  // A slice of the text could split a character, which no URL can contain.
  return `${[...words].slice(0, 64).join('')}-${Date.now().toString(36)}`;
}
