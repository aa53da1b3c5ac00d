import { useState } from 'preact/hooks';
import type { EventTypes, Webhook } from '../../../../client/types.js';
import { useViewer } from '../../base/viewer.js';
import { ConfirmDialog, FormDialog } from '../../parts/dialog.jsx';
import { CheckField, TextField } from '../../parts/field.jsx';
import { OneTimeSecret } from './one-time-secret.jsx';

const eventTypes = [
  ...(['mastery.reached', 'plateau.detected', 'plateau.ended'] as const),
  ...(['goal.reached', 'goal.at_risk', 'model.published', 'erasure.completed'] as const),
];

interface WebhookDialogProps {
  readonly webhook: Webhook;
  readonly onClose: () => void;
  readonly onDone: (outcome: string) => void;
}

/** Creates a webhook, or changes the given one. */
export function WebhookDialog({
  webhook,
  onClose,
  onDone,
}: Omit<WebhookDialogProps, 'webhook'> & { readonly webhook?: Webhook }) {
  const { api } = useViewer();
  const [url, setUrl] = useState(webhook?.url ?? '');
  const [description, setDescription] = useState(webhook?.description ?? '');
  const [types, setTypes] = useState<EventTypes>(webhook?.event_types ?? ['*']);
  const [secret, setSecret] = useState<string | null>(null);
  const save = async (): Promise<boolean> => {
    const setting = { url, description, event_types: types };
    if (webhook === undefined) setSecret((await api.createWebhook(setting)).secret);
    else await api.changeWebhook(webhook.webhook_id, setting);
    onDone(`${url} is saved.`);
    return webhook !== undefined;
  };
  return (
    <FormDialog
      title={webhook === undefined ? 'Create webhook' : `Change ${webhook.webhook_id}`}
      submitLabel="Save"
      result={secret !== null && <SecretView secret={secret} />}
      onSubmit={save}
      onClose={onClose}
    >
      <TextField
        label="URL"
        required
        pattern="https?://.+"
        title="A URL that starts with https://"
        maxLength={2048}
        placeholder="https://"
        value={url}
        onChange={setUrl}
      />
      <TextField label="Description" maxLength={256} value={description} onChange={setDescription} />
      <EventFields types={types} onChange={setTypes} />
    </FormDialog>
  );
}

interface EventFieldsProps {
  readonly types: EventTypes;
  readonly onChange: (types: EventTypes) => void;
}

function EventFields({ types, onChange }: EventFieldsProps) {
  const isAll = types.includes('*');
  const toggle = (type: (typeof eventTypes)[number], isOn: boolean): void =>
    onChange(isOn ? [...types, type] : types.filter((other) => other !== type));
  return (
    <fieldset class="list">
      <legend>Events</legend>
      <CheckField
        label="All, including types of later versions"
        checked={isAll}
        onChange={(isChecked) => onChange(isChecked ? ['*'] : eventTypes)}
      />
      {eventTypes.map((type) => (
        <CheckField
          key={type}
          label={<code>{type}</code>}
          disabled={isAll}
          checked={isAll || types.includes(type)}
          onChange={(isChecked) => toggle(type, isChecked)}
        />
      ))}
    </fieldset>
  );
}

const SecretView = ({ secret }: { secret: string }) => (
  <>
    <OneTimeSecret label="Signing secret" secret={secret} />
    <p>Copy the secret now. It is shown only once.</p>
  </>
);

export function RotateDialog({ webhook: { webhook_id, url }, onClose, onDone }: WebhookDialogProps) {
  const { api } = useViewer();
  const [revokesOld, setRevokesOld] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const rotate = async (): Promise<boolean> => {
    setSecret((await api.rotateSecret(webhook_id, { revoke_old: revokesOld })).secret);
    onDone(`The secret of ${webhook_id} is rotated.`);
    return false;
  };
  return (
    <FormDialog
      title={`Rotate the secret of ${webhook_id}?`}
      submitLabel="Rotate"
      result={secret !== null && <SecretView secret={secret} />}
      onSubmit={rotate}
      onClose={onClose}
    >
      <p>
        Messages to <code>{url}</code> are signed with a new secret. The old secret also signs for 24 hours.
      </p>
      <CheckField label="Revoke the old secret immediately" checked={revokesOld} onChange={setRevokesOld} />
    </FormDialog>
  );
}

export function DeleteWebhookDialog({ webhook: { webhook_id, url }, onClose, onDone }: WebhookDialogProps) {
  const { api } = useViewer();
  const remove = async (): Promise<void> => {
    await api.deleteWebhook(webhook_id);
    onDone(`${webhook_id} is deleted.`);
  };
  return (
    <ConfirmDialog
      title={`Delete ${webhook_id}?`}
      confirmLabel="Delete"
      isDangerous
      onConfirm={remove}
      onClose={onClose}
    >
      <p>
        <code>{url}</code> receives no more messages. Undelivered messages and the list of deliveries are
        deleted. You cannot undo this.
      </p>
    </ConfirmDialog>
  );
}

export function ToggleDialog({ webhook: { webhook_id, url, enabled }, onClose, onDone }: WebhookDialogProps) {
  const { api } = useViewer();
  const verb = enabled ? 'Disable' : 'Enable';
  const toggle = async (): Promise<void> => {
    await api.changeWebhook(webhook_id, { enabled: !enabled });
    onDone(`${webhook_id} is ${enabled ? 'disabled' : 'enabled'}.`);
  };
  return (
    <ConfirmDialog title={`${verb} ${webhook_id}?`} confirmLabel={verb} onConfirm={toggle} onClose={onClose}>
      <p>
        <code>{url}</code>{' '}
        {enabled
          ? 'receives no events while it is disabled. The service does not send these events later.'
          : 'receives new events. Events that occurred while it was disabled are not sent.'}
      </p>
    </ConfirmDialog>
  );
}
