import { useState } from 'preact/hooks';
import type { Key } from '../../../../client/types.js';
import { useViewer } from '../../base/viewer.js';
import { FormDialog } from '../../parts/dialog.jsx';
import { CheckField, TextField } from '../../parts/field.jsx';

export interface Quota {
  readonly isUnlimited: boolean;
  readonly perMinute: string;
}

export const toQuotaSetting = ({ isUnlimited, perMinute }: Quota) =>
  isUnlimited ? { unlimited: true } : { requests_per_minute: Number(perMinute) };

interface QuotaFieldsProps {
  readonly quota: Quota;
  readonly onChange: (quota: Quota) => void;
}

export function QuotaFields({ quota, onChange }: QuotaFieldsProps) {
  const { ownKey, hasScope } = useViewer();
  const maxPerMinute = hasScope('operator') ? null : ownKey.requests_per_minute;
  return (
    <fieldset>
      <legend>Quota</legend>
      <label>
        Requests per minute{' '}
        <input
          type="number"
          min={1}
          max={maxPerMinute ?? undefined}
          step={1}
          value={quota.perMinute}
          disabled={quota.isUnlimited}
          onInput={(event) => onChange({ ...quota, perMinute: event.currentTarget.value })}
        />
      </label>
      <CheckField
        label="Unlimited"
        checked={quota.isUnlimited}
        disabled={maxPerMinute !== null}
        onChange={(isChecked) => onChange({ ...quota, isUnlimited: isChecked })}
      />
      {maxPerMinute !== null && <p class="soft">Maximum: {maxPerMinute}, the quota of your key.</p>}
    </fieldset>
  );
}

export interface KeyLabels {
  readonly name: string;
  readonly note: string;
}

interface LabelFieldsProps {
  readonly labels: KeyLabels;
  readonly onChange: (labels: KeyLabels) => void;
}

export const LabelFields = ({ labels, onChange }: LabelFieldsProps) => (
  <>
    <TextField
      label="Name"
      maxLength={64}
      value={labels.name}
      onChange={(text) => onChange({ ...labels, name: text })}
    />
    <TextField
      label="Note for the owners"
      maxLength={256}
      value={labels.note}
      onChange={(text) => onChange({ ...labels, note: text })}
    />
  </>
);

interface EditKeyDialogProps {
  readonly apiKey: Key;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function EditKeyDialog({
  apiKey: { key_id, requests_per_minute, name, note },
  onClose,
  onDone,
}: EditKeyDialogProps) {
  const { api } = useViewer();
  const initialQuota: Quota = {
    isUnlimited: requests_per_minute === null,
    perMinute: `${requests_per_minute ?? 100}`,
  };
  const [quota, setQuota] = useState(initialQuota);
  const [labels, setLabels] = useState<KeyLabels>({ name: name ?? '', note: note ?? '' });
  const save = async (): Promise<boolean> => {
    const isChanged =
      quota.isUnlimited !== initialQuota.isUnlimited || quota.perMinute !== initialQuota.perMinute;
    await api.changeKey(key_id, { ...labels, ...(isChanged && toQuotaSetting(quota)) });
    onDone();
    return true;
  };
  return (
    <FormDialog title={`Edit key ${key_id}`} submitLabel="Save" onSubmit={save} onClose={onClose}>
      <LabelFields labels={labels} onChange={setLabels} />
      <QuotaFields quota={quota} onChange={setQuota} />
      <p class="soft">
        The quota counts requests, not answers. Requests above the quota get status 429. A change takes effect
        within 5 seconds.
      </p>
    </FormDialog>
  );
}
