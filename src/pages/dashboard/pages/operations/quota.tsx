import { useState } from 'preact/hooks';
import type { Key } from '../../../../client/types.js';
import { useViewer } from '../../base/viewer.js';
import { ConfirmDialog } from '../../parts/dialog.jsx';

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
      <label class="check">
        <input
          type="checkbox"
          checked={quota.isUnlimited}
          disabled={maxPerMinute !== null}
          onChange={(event) => onChange({ ...quota, isUnlimited: event.currentTarget.checked })}
        />{' '}
        Unlimited
      </label>
      {maxPerMinute !== null && <p class="soft">Maximum: {maxPerMinute}, the quota of your key.</p>}
    </fieldset>
  );
}

interface ChangeQuotaDialogProps {
  readonly apiKey: Key;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function ChangeQuotaDialog({
  apiKey: { key_id, requests_per_minute },
  onClose,
  onDone,
}: ChangeQuotaDialogProps) {
  const { api } = useViewer();
  const [quota, setQuota] = useState<Quota>({
    isUnlimited: requests_per_minute === null,
    perMinute: `${requests_per_minute ?? 100}`,
  });
  const save = async (): Promise<void> => {
    await api.changeKey(key_id, toQuotaSetting(quota));
    onDone();
  };
  return (
    <ConfirmDialog
      title={`Change quota of key ${key_id}`}
      confirmLabel="Set quota"
      onConfirm={save}
      onClose={onClose}
    >
      <QuotaFields quota={quota} onChange={setQuota} />
      <p class="soft">
        The quota counts requests, not answers. Requests above the quota get status 429. A change takes effect
        within 5 seconds.
      </p>
    </ConfirmDialog>
  );
}
