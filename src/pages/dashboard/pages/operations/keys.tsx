import { useState } from 'preact/hooks';
import type { Key } from '../../../../client/types.js';
import { day, dayAndTime, grouped } from '../../base/format.js';
import { usePaged } from '../../base/paged.js';
import { look, type Route } from '../../base/route.js';
import { useViewer, type Viewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { Confirm } from '../../parts/dialog.jsx';
import { PagedTable } from '../../parts/paged.jsx';
import { Badge, Panel } from '../../parts/stat.jsx';
import { actionColumn, type Column, fieldsOf, RowButton } from '../../parts/table.jsx';
import { CreateKey } from './create-key.jsx';
import { ChangeQuota } from './quota.jsx';

type Asked = { readonly what: 'quota' | 'revoke'; readonly key: Key } | { readonly what: 'create' };

export function KeysPart({ route: { query } }: { readonly route: Route }) {
  const viewer = useViewer();
  const { api, own, can } = viewer;
  const tenant = can('operator') ? query.tenant : undefined;
  const [asked, ask] = useState<Asked | null>(null);
  const keys = usePaged((page) => api.keys({ ...page, limit: 200, tenant }), 'keys', [api, tenant]);
  const isShown = ({ revoked_at }: Key): boolean => revoked_at === null || query.revoked !== undefined;
  const close = (): void => ask(null);
  return (
    <Panel
      title="API keys"
      about="Who may call the API. A key itself is shown once, when it is made; afterwards it goes by its id."
    >
      <div class="row">
        <Button class="primary" onClick={() => ask({ what: 'create' })}>
          New key
        </Button>
        {can('operator') && (
          <label>
            Tenant{' '}
            <input
              type="search"
              placeholder="all"
              value={tenant ?? ''}
              onChange={(event) => look({ tenant: event.currentTarget.value.trim() })}
            />
          </label>
        )}
        <label class="check">
          <input
            type="checkbox"
            checked={query.revoked !== undefined}
            onChange={(event) => look({ revoked: event.currentTarget.checked ? 'shown' : null })}
          />{' '}
          Revoked ones, too
        </label>
      </div>
      <PagedTable
        of={{ ...keys, rows: keys.rows?.filter(isShown) ?? null }}
        what="keys"
        name="API keys"
        columns={columnsOf(viewer, ask)}
        rowKey={({ key_id }) => key_id}
        filter
        empty={tenant === undefined ? 'No key is in force.' : `The tenant ${tenant} has no key in force.`}
      />
      {asked?.what === 'create' && <CreateKey onClose={close} onDone={keys.reload} />}
      {asked?.what === 'quota' && <ChangeQuota apiKey={asked.key} onClose={close} onDone={keys.reload} />}
      {asked?.what === 'revoke' && (
        <Confirm
          title={`Revoke the key ${asked.key.key_id}?`}
          verb="Revoke"
          isDangerous
          onClose={close}
          act={async () => {
            await api.revokeKey(asked.key.key_id);
            keys.reload();
          }}
        >
          <p>
            Whoever uses it, for the tenant <bdi>{asked.key.tenant}</bdi> with {asked.key.scopes.join(', ')},
            is refused within 5 seconds. It cannot be undone: they need a new key.
          </p>
          {asked.key.key_id === own.key_id && (
            <p>
              <strong>It is the key that this dashboard uses: you will have to enter another one.</strong>
            </p>
          )}
        </Confirm>
      )}
    </Panel>
  );
}

const field = fieldsOf<Key>();
const quotaText = ({ requests_per_minute }: Key): string =>
  requests_per_minute === null ? 'unlimited' : grouped(requests_per_minute);

const columnsOf = ({ own, can }: Viewer, ask: (asked: Asked) => void): Column<Key>[] => [
  field('Key', 'key_id', {
    show: ({ key_id, development }) => (
      <>
        <code>{key_id}</code> {key_id === own.key_id && <Badge look="soft">yours</Badge>}{' '}
        {development && <Badge look="soft">development</Badge>}
      </>
    ),
    about: 'The first 12 characters of its SHA-256',
  }),
  ...(can('operator') ? [field('Tenant', 'tenant')] : []),
  field('Scopes', ({ scopes }) => scopes.join(', '), {
    format: (scopes) => <span class="words">{scopes}</span>,
  }),
  field('Requests a minute', 'requests_per_minute', { show: quotaText, align: 'end' }),
  field('Made (UTC)', 'created_at', {
    format: (created_at) => <span title={dayAndTime(created_at)}>{day(created_at)}</span>,
  }),
  field('State', ({ revoked_at }) => (revoked_at === null ? 'in force' : `revoked ${revoked_at}`), {
    show: ({ revoked_at }) =>
      revoked_at === null ? <Badge look="good">in force</Badge> : <>revoked {day(revoked_at)}</>,
  }),
  actionColumn(
    (key) =>
      key.revoked_at === null && (
        <span class="row tight">
          <RowButton
            aria-label={`Change the quota of ${key.key_id}`}
            onClick={() => ask({ what: 'quota', key })}
          >
            Quota
          </RowButton>
          <RowButton aria-label={`Revoke ${key.key_id}`} onClick={() => ask({ what: 'revoke', key })}>
            Revoke
          </RowButton>
        </span>
      ),
  ),
];
