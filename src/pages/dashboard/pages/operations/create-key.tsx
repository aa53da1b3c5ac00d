import { useState } from 'preact/hooks';
import type { CreatedKey, OwnKey } from '../../../../client/types.js';
import { useViewer } from '../../base/viewer.js';
import { FormDialog } from '../../parts/dialog.jsx';
import { CheckField, TextField } from '../../parts/field.jsx';
import { type KeyLabels, LabelFields, type Quota, QuotaFields, toQuotaSetting } from './edit-key.jsx';
import { OneTimeSecret } from './one-time-secret.jsx';

type Scope = OwnKey['scopes'][number];

const scopeMeanings: Readonly<Record<Scope, string>> = {
  read: 'mastery, forecasts and statistics of the tenant',
  write: 'answers and goals',
  admin: 'catalogue, exports, erasures, keys and webhooks of the tenant',
  operator: 'live metrics, parked rows, audits, keys of all tenants',
};

interface CreateKeyDialogProps {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function CreateKeyDialog({ onClose, onDone }: CreateKeyDialogProps) {
  const { api, ownKey, hasScope } = useViewer();
  const [createdKey, setCreatedKey] = useState<CreatedKey | null>(null);
  const [scopes, setScopes] = useState<readonly Scope[]>(['read']);
  const [tenant, setTenant] = useState<string>(ownKey.tenant);
  const [labels, setLabels] = useState<KeyLabels>({ name: '', note: '' });
  const [quota, setQuota] = useState<Quota>({
    isUnlimited: false,
    perMinute: `${Math.min(100, ownKey.requests_per_minute ?? 100)}`,
  });
  const create = async (): Promise<boolean> => {
    const tenantOption = hasScope('operator') ? { tenant } : {};
    setCreatedKey(await api.createKey({ scopes, ...labels, ...tenantOption, ...toQuotaSetting(quota) }));
    onDone();
    return false;
  };
  return (
    <FormDialog
      title={createdKey === null ? 'Create key' : 'Key created'}
      submitLabel="Create key"
      isIncomplete={scopes.length === 0}
      result={createdKey !== null && <CreatedKeyView created={createdKey} />}
      onSubmit={create}
      onClose={onClose}
    >
      <LabelFields labels={labels} onChange={setLabels} />
      {hasScope('operator') && (
        <TextField
          label="Tenant"
          required
          maxLength={128}
          pattern="[A-Za-z0-9._~\-]+"
          title="Allowed characters: A-Z, a-z, 0-9 and . _ ~ -"
          value={tenant}
          onChange={setTenant}
        />
      )}
      <ScopeFields scopes={scopes} onChange={setScopes} />
      <QuotaFields quota={quota} onChange={setQuota} />
    </FormDialog>
  );
}

const CreatedKeyView = ({ created }: { created: CreatedKey }) => (
  <>
    <OneTimeSecret
      label={`Key ${created.key_id} of ${created.tenant}, scopes ${created.scopes.join(', ')}`}
      secret={created.key}
    />
    <p>Copy the key now. It is shown only once.</p>
  </>
);

interface ScopeFieldsProps {
  readonly scopes: readonly Scope[];
  readonly onChange: (scopes: readonly Scope[]) => void;
}

function ScopeFields({ scopes, onChange }: ScopeFieldsProps) {
  const { hasScope } = useViewer();
  const all = Object.entries(scopeMeanings) as [Scope, string][];
  return (
    <fieldset class="list">
      <legend>Scopes</legend>
      {all
        .filter(([scope]) => hasScope(scope))
        .map(([scope, meaning]) => (
          <CheckField
            key={scope}
            label={
              <>
                <code>{scope}</code> <span class="soft">{meaning}</span>
              </>
            }
            checked={scopes.includes(scope)}
            onChange={(isChecked) =>
              onChange(isChecked ? [...scopes, scope] : scopes.filter((other) => other !== scope))
            }
          />
        ))}
    </fieldset>
  );
}
