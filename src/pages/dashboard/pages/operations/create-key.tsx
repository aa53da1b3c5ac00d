import { useState } from 'preact/hooks';
import type { CreatedKey, OwnKey } from '../../../../client/types.js';
import { useAction } from '../../base/action.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { Dialog } from '../../parts/dialog.jsx';
import { ErrorNote } from '../../parts/loaded.jsx';
import { OneTimeSecret } from './one-time-secret.jsx';
import { type Quota, QuotaFields, toQuotaSetting } from './quota.jsx';

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
  const [createdKey, setCreatedKey] = useState<CreatedKey | null>(null);
  const handleCreated = (key: CreatedKey): void => {
    setCreatedKey(key);
    onDone();
  };
  return (
    <Dialog title={createdKey === null ? 'Create key' : 'Key created'} onClose={onClose}>
      {createdKey === null ? (
        <CreateKeyForm onClose={onClose} onDone={handleCreated} />
      ) : (
        <CreatedKeyView created={createdKey} onClose={onClose} />
      )}
    </Dialog>
  );
}

const CreatedKeyView = ({ created, onClose }: { created: CreatedKey; onClose: () => void }) => (
  <>
    <OneTimeSecret
      label={`Key ${created.key_id} of ${created.tenant}, scopes ${created.scopes.join(', ')}`}
      secret={created.key}
    />
    <p>Copy the key now. It is shown only once.</p>
    <div>
      <Button onClick={onClose}>Done</Button>
    </div>
  </>
);

function CreateKeyForm({ onClose, onDone }: { onClose: () => void; onDone: (key: CreatedKey) => void }) {
  const { api, ownKey, hasScope } = useViewer();
  const [scopes, setScopes] = useState<readonly Scope[]>(['read']);
  const [tenant, setTenant] = useState<string>(ownKey.tenant);
  const [quota, setQuota] = useState<Quota>({
    isUnlimited: false,
    perMinute: `${Math.min(100, ownKey.requests_per_minute ?? 100)}`,
  });
  const { run, isBusy, error } = useAction(async () => {
    const tenantOption = hasScope('operator') ? { tenant } : {};
    onDone(await api.createKey({ scopes, ...tenantOption, ...toQuotaSetting(quota) }));
  });
  const submit = (event: Event): void => {
    event.preventDefault();
    void run();
  };
  return (
    <form class="form" onSubmit={submit}>
      {hasScope('operator') && (
        <label class="field">
          Tenant
          <input
            required
            maxLength={128}
            pattern="[A-Za-z0-9._~\-]+"
            title="Allowed characters: A-Z, a-z, 0-9 and . _ ~ -"
            value={tenant}
            onInput={(event) => setTenant(event.currentTarget.value)}
          />
        </label>
      )}
      <ScopeFields scopes={scopes} onChange={setScopes} />
      <QuotaFields quota={quota} onChange={setQuota} />
      {error !== null && <ErrorNote error={error} />}
      <div class="row">
        <button type="submit" class="primary" disabled={isBusy || scopes.length === 0}>
          Create key
        </button>
        <Button onClick={onClose}>Cancel</Button>
      </div>
    </form>
  );
}

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
          <label key={scope} class="check">
            <input
              type="checkbox"
              checked={scopes.includes(scope)}
              onChange={(event) =>
                onChange(
                  event.currentTarget.checked
                    ? [...scopes, scope]
                    : scopes.filter((other) => other !== scope),
                )
              }
            />{' '}
            <code>{scope}</code> <span class="soft">{meaning}</span>
          </label>
        ))}
    </fieldset>
  );
}
