import { useState } from 'preact/hooks';
import type { Key } from '../../../../client/types.js';
import { formatDay, formatDayTime, formatNumber, missingText } from '../../base/format.js';
import { usePagedList } from '../../base/paged-list.js';
import { type Route, updateQuery } from '../../base/route.js';
import { useViewer, type Viewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { ConfirmDialog } from '../../parts/dialog.jsx';
import { CheckField } from '../../parts/field.jsx';
import { PagedTable } from '../../parts/paged-table.jsx';
import { Badge, Panel } from '../../parts/stat.jsx';
import { type Column, createActionColumn, createColumnBuilder, RowButton } from '../../parts/table.jsx';
import { CreateKeyDialog } from './create-key.jsx';
import { EditKeyDialog } from './edit-key.jsx';

type DialogRequest = { readonly kind: 'edit' | 'revoke'; readonly key: Key } | { readonly kind: 'create' };

export function KeysPart({ route: { query } }: { readonly route: Route }) {
  const viewer = useViewer();
  const { api, ownKey, hasScope } = viewer;
  const tenant = hasScope('operator') ? query.tenant : undefined;
  const [dialog, setDialog] = useState<DialogRequest | null>(null);
  const keys = usePagedList((page) => api.keys({ ...page, limit: 200, tenant }), 'keys', [api, tenant]);
  const isVisible = ({ revoked_at }: Key): boolean => revoked_at === null || query.revoked !== undefined;
  const close = (): void => setDialog(null);
  return (
    <Panel
      title="API keys"
      about="Keys that can call the API. A key is shown only once, when it is created. Afterwards the list shows its id."
    >
      <div class="row">
        <Button class="primary" onClick={() => setDialog({ kind: 'create' })}>
          Create key
        </Button>
        {hasScope('operator') && (
          <label>
            Tenant{' '}
            <input
              type="search"
              placeholder="all"
              value={tenant ?? ''}
              onChange={(event) => updateQuery({ tenant: event.currentTarget.value.trim() })}
            />
          </label>
        )}
        <CheckField
          label="Show revoked keys"
          checked={query.revoked !== undefined}
          onChange={(isChecked) => updateQuery({ revoked: isChecked ? 'shown' : null })}
        />
      </div>
      <PagedTable
        list={{ ...keys, rows: keys.rows?.filter(isVisible) ?? null }}
        subject="keys"
        name="API keys"
        columns={buildColumns(viewer, setDialog)}
        rowKey={({ key_id }) => key_id}
        filter
        empty={tenant === undefined ? 'No active keys.' : `No active keys of the tenant ${tenant}.`}
      />
      {dialog?.kind === 'create' && <CreateKeyDialog onClose={close} onDone={keys.reload} />}
      {dialog?.kind === 'edit' && <EditKeyDialog apiKey={dialog.key} onClose={close} onDone={keys.reload} />}
      {dialog?.kind === 'revoke' && (
        <ConfirmDialog
          title={`Revoke the key ${dialog.key.name ?? dialog.key.key_id}?`}
          confirmLabel="Revoke"
          isDangerous
          onClose={close}
          onConfirm={async () => {
            await api.revokeKey(dialog.key.key_id);
            keys.reload();
          }}
        >
          <p>
            The service rejects this key within 5 seconds. Tenant: <bdi>{dialog.key.tenant}</bdi>, scopes:{' '}
            {dialog.key.scopes.join(', ')}. You cannot undo a revocation. Clients that use the key need a new
            key.
          </p>
          {dialog.key.key_id === ownKey.key_id && (
            <p>
              <strong>The dashboard uses this key. After the revocation, sign in with another key.</strong>
            </p>
          )}
        </ConfirmDialog>
      )}
    </Panel>
  );
}

const field = createColumnBuilder<Key>();
const formatQuota = ({ requests_per_minute }: Key): string =>
  requests_per_minute === null ? 'unlimited' : formatNumber(requests_per_minute);

const buildColumns = (
  { ownKey, hasScope }: Viewer,
  openDialog: (asked: DialogRequest) => void,
): Column<Key>[] => [
  field('Name', 'name', {
    show: ({ name, note }) => (
      <>
        <bdi class="words">{name ?? missingText}</bdi>
        {note !== null && (
          <div class="soft">
            <bdi>{note}</bdi>
          </div>
        )}
      </>
    ),
  }),
  field('Note', 'note', { isForFile: true }),
  field('Key', 'key_id', {
    show: ({ key_id, development }) => (
      <>
        <code>{key_id}</code> {key_id === ownKey.key_id && <Badge tone="soft">your key</Badge>}{' '}
        {development && <Badge tone="soft">development</Badge>}
      </>
    ),
    about: 'First 12 characters of the SHA-256 hash of the key',
  }),
  ...(hasScope('operator') ? [field('Tenant', 'tenant')] : []),
  field('Scopes', ({ scopes }) => scopes.join(', '), {
    format: (scopes) => <span class="words">{scopes}</span>,
  }),
  field('Requests per minute', 'requests_per_minute', { show: formatQuota, align: 'end' }),
  field('Created', 'created_at', {
    isTime: true,
    format: (created_at) => <span title={formatDayTime(created_at)}>{formatDay(created_at)}</span>,
  }),
  field('Last used', 'last_used_at', { isTime: true }),
  field('Status', ({ revoked_at }) => (revoked_at === null ? 'active' : `revoked ${formatDay(revoked_at)}`), {
    format: (status) => (status === 'active' ? <Badge tone="good">active</Badge> : status),
  }),
  createActionColumn(
    (key) =>
      key.revoked_at === null && (
        <span class="row tight">
          <RowButton aria-label={`Edit ${key.key_id}`} onClick={() => openDialog({ kind: 'edit', key })}>
            Edit
          </RowButton>
          <RowButton aria-label={`Revoke ${key.key_id}`} onClick={() => openDialog({ kind: 'revoke', key })}>
            Revoke
          </RowButton>
        </span>
      ),
  ),
];
