import { useState } from 'preact/hooks';
import type { CreatedKey, OwnKey } from '../../../../client/types.js';
import { useAction } from '../../base/action.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { Dialog } from '../../parts/dialog.jsx';
import { ErrorNote } from '../../parts/loaded.jsx';
import { Once } from './once.jsx';
import { type Quota, QuotaFields, quotaSetting } from './quota.jsx';

type Scope = OwnKey['scopes'][number];

const meanings: Readonly<Record<Scope, string>> = {
  read: 'mastery, forecasts, statistics of the tenant',
  write: 'answers and goals',
  admin: 'the catalogue, exports, erasures, keys and webhooks of the tenant',
  operator: 'live figures, parked rows, audits, the keys of all tenants',
};

interface CreateKeyProps {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function CreateKey({ onClose, onDone }: CreateKeyProps) {
  const [made, setMade] = useState<CreatedKey | null>(null);
  const done = (key: CreatedKey): void => {
    setMade(key);
    onDone();
  };
  return (
    <Dialog title={made === null ? 'New key' : 'The new key'} onClose={onClose}>
      {made === null ? <Form onClose={onClose} onDone={done} /> : <Made created={made} onClose={onClose} />}
    </Dialog>
  );
}

const Made = ({ created, onClose }: { created: CreatedKey; onClose: () => void }) => (
  <>
    <Once
      label={`Key ${created.key_id} of ${created.tenant}, with ${created.scopes.join(', ')}`}
      secret={created.key}
    />
    <p>It is shown here and nowhere else: copy it now. Who loses it gets a new one.</p>
    <div>
      <Button onClick={onClose}>I have it</Button>
    </div>
  </>
);

function Form({ onClose, onDone }: { onClose: () => void; onDone: (key: CreatedKey) => void }) {
  const { api, own, can } = useViewer();
  const [scopes, setScopes] = useState<readonly Scope[]>(['read']);
  const [tenant, setTenant] = useState<string>(own.tenant);
  const [quota, setQuota] = useState<Quota>({
    isUnlimited: false,
    perMinute: `${Math.min(100, own.requests_per_minute ?? 100)}`,
  });
  const { run, isBusy, error } = useAction(async () => {
    const whose = can('operator') ? { tenant } : {};
    onDone(await api.createKey({ scopes, ...whose, ...quotaSetting(quota) }));
  });
  const submit = (event: Event): void => {
    event.preventDefault();
    void run();
  };
  return (
    <form class="form" onSubmit={submit}>
      {can('operator') && (
        <label class="field">
          Tenant
          <input
            required
            maxLength={128}
            pattern="[A-Za-z0-9._~\-]+"
            title="Of A-Z, a-z, 0-9 and . _ ~ -"
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
          Make the key
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
  const { can } = useViewer();
  const all = Object.entries(meanings) as [Scope, string][];
  return (
    <fieldset class="list">
      <legend>Scopes</legend>
      {all
        .filter(([scope]) => can(scope))
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
