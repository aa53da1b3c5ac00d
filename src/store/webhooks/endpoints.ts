/** Only Redis has the secrets of endpoints. */
import { randomBytes } from 'node:crypto';
import { encodeWebhookRow } from '../../contracts/journal/journal.js';
import { createStoredParser } from '../../contracts/schema/stored-json.js';
import {
  type DisabledReason,
  StoredWebhook,
  type WebhookRecord,
  type WebhookSetting,
} from '../../contracts/webhooks/webhooks.js';
import { ApiError, unavailable } from '../../errors.js';
import { defineScript } from '../redis/commands/script.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { withReplication } from '../redis/connection/replication.js';
import {
  endpointMessageKeys,
  endpointsKey,
  maxJournalEntries,
  metaKey,
  nextDeliveriesKey,
  subscriptionsKey,
  webhooksJournalKey,
} from '../redis/keys.js';

export const maxEndpoints = 10;

const decode = createStoredParser(StoredWebhook, 'a stored webhook');

/**
 * Also appends to the journal and updates the tenant's subscriptions. Deletes messages with their endpoint:
 * an erasure would not find them. KEYS: the tenant's endpoints, subscriptions, journal, next deliveries, keys
 * of the messages. ARGV: tenant, id, previous value ('': new), value ('': delete), row, journal limit.
 */
const writeEndpointScript = defineScript(9)<
  [...keys: [string, string, string, string], ...texts: string[], maxJournal: number],
  'written' | 'changed' | 'many' | 'full'
>(`
local tenant, id, before, value = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if (redis.call('HGET', KEYS[1], id) or '') ~= before then return 'changed' end
if before == '' and redis.call('HLEN', KEYS[1]) >= ${maxEndpoints} then return 'many' end
if redis.call('XLEN', KEYS[3]) >= tonumber(ARGV[6]) then return 'full' end
if value == '' then
  redis.call('HDEL', KEYS[1], id)
  redis.call('UNLINK', unpack(KEYS, 5))
  redis.call('ZREM', KEYS[4], tenant .. ':' .. id)
else
  redis.call('HSET', KEYS[1], id, value)
end
redis.call('XADD', KEYS[3], '*', 'k', 'webhook', 'r', ARGV[5])
local wanted = ''
for _, text in ipairs(redis.call('HVALS', KEYS[1])) do
  local endpoint = cjson.decode(text)
  local isOpen = endpoint.disabledReason == cjson.null and #endpoint.secrets > 0
  for _, type in ipairs(isOpen and endpoint.eventTypes or {}) do
    local word = ' ' .. type .. ' '
    if not string.find(wanted, word, 1, true) then wanted = wanted .. word end
  end
end
-- Written even if empty: a rebuild detects lost webhooks by the missing key.
redis.call('HSET', KEYS[2], tenant, wanted)
return 'written'
`);

export type Endpoint = ReturnType<typeof toEndpoint>;

/** `secrets`: valid ones, newest first; none after a rebuild. */
const toEndpoint = ({ v: _, secrets, ...record }: StoredWebhook) => {
  const valid = secrets.filter(({ until }) => until === null || until > Date.now());
  const enabled = record.disabledReason === null;
  return { ...record, enabled, secrets: valid.map(({ secret }) => secret) };
};

export type EndpointStore = ReturnType<typeof createEndpointStore>;

export function createEndpointStore(client: RedisClient, maxJournal = maxJournalEntries) {
  const read = (tenant: string, id: string) => mapRedisErrors(client.hget(endpointsKey(tenant), id));

  /** @param next empty url: delete @returns false after a concurrent change */
  async function write(before: string, next: StoredWebhook): Promise<boolean> {
    if ((await mapRedisErrors(client.exists(metaKey))) === 0)
      throw unavailable('Learner state was lost and is not rebuilt yet; retry later.');
    const { tenant, id, url } = next;
    const value = url === '' ? '' : JSON.stringify(next);
    const keys = [endpointsKey(tenant), subscriptionsKey, webhooksJournalKey, nextDeliveriesKey] as const;
    const args = [...endpointMessageKeys(id), tenant, id, before, value, encodeWebhookRow(next)];
    const outcome = await withReplication(client, subscriptionsKey, () =>
      writeEndpointScript(client, ...keys, ...args, maxJournal),
    );
    if (outcome === 'many')
      throw new ApiError(
        'LIMIT_EXCEEDED',
        `The tenant has the maximum of ${maxEndpoints} webhooks; delete one first.`,
      );
    if (outcome === 'full') throw unavailable('Too many changes are waiting for ClickHouse; retry later.');
    return outcome === 'written';
  }

  async function update(tenant: string, id: string, transform: (stored: StoredWebhook) => StoredWebhook) {
    for (;;) {
      const before = await read(tenant, id);
      if (before === null) return null;
      const stored = decode(before);
      const next = { ...transform(stored), updatedAt: Math.max(Date.now(), stored.updatedAt + 1) };
      if (await write(before, next)) return toEndpoint(next);
    }
  }

  return {
    list: async (tenant: string): Promise<Endpoint[]> =>
      (await mapRedisErrors(client.hvals(endpointsKey(tenant)))).map((value) => toEndpoint(decode(value))),
    find: async (tenant: string, id: string): Promise<Endpoint | null> => {
      const value = await read(tenant, id);
      return value === null ? null : toEndpoint(decode(value));
    },
    /** @throws ApiError LIMIT_EXCEEDED */
    create: async (tenant: string, setting: WebhookSetting, secret: string): Promise<Endpoint> => {
      const id = `wh_${randomBytes(randomIdBytes).toString('base64url')}`;
      const [now, secrets] = [Date.now(), [{ secret, until: null }]];
      const fields = { ...setting, disabledReason: null, createdAt: now, updatedAt: now, secrets };
      const stored: StoredWebhook = { v: 1, tenant, id, ...fields };
      await write('', stored);
      return toEndpoint(stored);
    },
    /** @param transform repeated after concurrent changes */
    change: update,
    remove: (tenant: string, id: string) => update(tenant, id, (stored) => ({ ...stored, url: '' })),
    disable: (tenant: string, id: string, reason: DisabledReason) =>
      update(tenant, id, (stored) => ({ ...stored, disabledReason: stored.disabledReason ?? reason })),
  };
}

const randomIdBytes = 12;

/** Disabled, because their secrets are lost. */
export async function restoreEndpoints(
  client: RedisClient,
  records: readonly WebhookRecord[],
): Promise<void> {
  for (const { tenant, id, ...record } of records) {
    const disabledReason = record.disabledReason ?? 'restored';
    const stored: StoredWebhook = { v: 1, tenant, id, ...record, disabledReason, secrets: [] };
    await mapRedisErrors(client.hsetnx(endpointsKey(tenant), id, JSON.stringify(stored)));
    await mapRedisErrors(client.hsetnx(subscriptionsKey, tenant, ''));
  }
}

/** Not journaled: the caller also removes the stored rows. */
export async function removeEndpoints(client: RedisClient, tenant: string): Promise<void> {
  for (const id of await mapRedisErrors(client.hkeys(endpointsKey(tenant)))) {
    await mapRedisErrors(client.unlink(...endpointMessageKeys(id)));
    await mapRedisErrors(client.zrem(nextDeliveriesKey, `${tenant}:${id}`));
  }
  await mapRedisErrors(client.unlink(endpointsKey(tenant)));
  await mapRedisErrors(client.hdel(subscriptionsKey, tenant));
}
