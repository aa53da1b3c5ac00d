import { useState } from 'preact/hooks';
import type { Key } from '../../../../client/types.js';
import { useViewer } from '../../base/viewer.js';
import { Confirm } from '../../parts/dialog.jsx';

export interface Quota {
  readonly isUnlimited: boolean;
  readonly perMinute: string;
}

export const quotaSetting = ({ isUnlimited, perMinute }: Quota) =>
  isUnlimited ? { unlimited: true } : { requests_per_minute: Number(perMinute) };

interface QuotaFieldsProps {
  readonly quota: Quota;
  readonly onChange: (quota: Quota) => void;
}

export function QuotaFields({ quota, onChange }: QuotaFieldsProps) {
  const { own, can } = useViewer();
  const most = can('operator') ? null : own.requests_per_minute;
  return (
    <fieldset>
      <legend>Quota</legend>
      <label>
        Requests a minute{' '}
        <input
          type="number"
          min={1}
          max={most ?? undefined}
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
          disabled={most !== null}
          onChange={(event) => onChange({ ...quota, isUnlimited: event.currentTarget.checked })}
        />{' '}
        unlimited
      </label>
      {most !== null && <p class="soft">Yours has {most}: it can give no more.</p>}
    </fieldset>
  );
}

interface ChangeQuotaProps {
  readonly apiKey: Key;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function ChangeQuota({ apiKey: { key_id, requests_per_minute }, onClose, onDone }: ChangeQuotaProps) {
  const { api } = useViewer();
  const [quota, setQuota] = useState<Quota>({
    isUnlimited: requests_per_minute === null,
    perMinute: `${requests_per_minute ?? 100}`,
  });
  const act = async (): Promise<void> => {
    await api.changeKey(key_id, quotaSetting(quota));
    onDone();
  };
  return (
    <Confirm title={`Quota of the key ${key_id}`} verb="Set the quota" act={act} onClose={onClose}>
      <QuotaFields quota={quota} onChange={setQuota} />
      <p class="soft">
        It counts requests, whatever they bring; one beyond it is answered with 429. It takes effect within 5
        seconds.
      </p>
    </Confirm>
  );
}
