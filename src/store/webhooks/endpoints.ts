/** Endpoints of webhooks, each as JSON in its tenant's hash, with the secrets that only Redis has. */
import { randomBytes } from 'node:crypto';
import { Compile } from 'typebox/compile';
import { webhookRow } from '../../contracts/journal.js';
import { wantedText } from '../../contracts/webhook-events.js';
import {
  askedTypes,
  type DisabledReason,
  StoredWebhook,
  type WebhookRecord,
  type WebhookSetting,
} from '../../contracts/webhooks.js';
import { ApiError, unavailable } from '../../errors.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { endpointsKey, journalBound, metaKey, wantedEventsKey, webhooksJournalKey } from '../redis/keys.js';
import { replicated } from '../redis/replication.js';
import { defineScript } from '../redis/script.js';

export const maxEndpoints = 10;

const storedCheck = Compile(StoredWebhook);

export interface Endpoint extends WebhookRecord {
  readonly enabled: boolean;
  /** Those that sign now (`whsec_` and base64), newest first; none after a rebuild. */
  readonly secrets: readonly string[];
}

/** @throws Error for an endpoint that this version of the service cannot read */
function decode(value: string): StoredWebhook {
  const stored: unknown = JSON.parse(value);
  if (storedCheck.Check(stored)) return stored;
  throw new Error('a stored webhook is not known to this version');
}

/**
 * Writes an endpoint where it is unchanged, with the journal's row and what its tenant asks for now.
 * KEYS: the tenant's endpoints, what all tenants ask for, the journal.
 * ARGV: id; the value that it replaces ('': it is new); the value now ('': it is deleted); the row; tenant; types that `*`
 *   stands for, between spaces; most endpoints; most entries of the journal.
 * Result: `written`, or why not: `changed` meanwhile, `many` endpoints, the journal is `full`.
 */
const writeEndpoint = defineScript(3)<
  [...keys: [string, string, string], ...texts: string[], maxEndpoints: number, maxJournal: number],
  'written' | 'changed' | 'many' | 'full'
>(`
local id, before, value = ARGV[1], ARGV[2], ARGV[3]
if (redis.call('HGET', KEYS[1], id) or '') ~= before then return 'changed' end
if before == '' and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[7]) then return 'many' end
if redis.call('XLEN', KEYS[3]) >= tonumber(ARGV[8]) then return 'full' end
if value == '' then redis.call('HDEL', KEYS[1], id) else redis.call('HSET', KEYS[1], id, value) end
redis.call('XADD', KEYS[3], '*', 'k', 'webhook', 'r', ARGV[4])
local asked = {}
for _, text in ipairs(redis.call('HVALS', KEYS[1])) do
  local endpoint = cjson.decode(text)
  if endpoint.disabledReason == cjson.null and #endpoint.secrets > 0 then
    for _, type in ipairs(endpoint.eventTypes) do asked[type] = true end
  end
end
local wanted = ''
for type in string.gmatch(ARGV[6], '%S+') do
  if asked['*'] or asked[type] then wanted = wanted .. ' ' .. type end
end
-- Stays where nothing is asked for: a rebuild sees by it that webhooks are not lost.
redis.call('HSET', KEYS[2], ARGV[5], wanted == '' and '' or wanted .. ' ')
return 'written'
`);

const endpointOf = ({ v: _, secrets, ...record }: StoredWebhook): Endpoint => {
  const valid = secrets.filter(({ until }) => until === null || until > Date.now());
  const enabled = record.disabledReason === null;
  return { ...record, enabled, secrets: valid.map(({ secret }) => secret) };
};

export type EndpointStore = ReturnType<typeof createEndpointStore>;

/** Its functions throw ApiError UNAVAILABLE, also where Redis came back empty. @param bound most entries of the journal */
export function createEndpointStore(client: RedisClient, bound = journalBound) {
  const read = (tenant: string, id: string) => whileRedisServes(client.hget(endpointsKey(tenant), id));

  /** @param before value that it replaces, '' for a new one @param next with an empty url it is deleted @returns false where it is another by now */
  async function write(before: string, next: StoredWebhook): Promise<boolean> {
    if ((await whileRedisServes(client.exists(metaKey))) === 0)
      throw unavailable('The state store came back empty and has to be rebuilt first');
    const { tenant, id, url } = next;
    const value = url === '' ? '' : JSON.stringify(next);
    const args = [id, before, value, webhookRow(next), tenant, wantedText(askedTypes)];
    const keys = [endpointsKey(tenant), wantedEventsKey, webhooksJournalKey] as const;
    const outcome = await replicated(client, wantedEventsKey, () =>
      whileRedisServes(writeEndpoint(client, ...keys, ...args, maxEndpoints, bound)),
    );
    if (outcome === 'many')
      throw new ApiError('LIMIT_EXCEEDED', `A tenant has at most ${maxEndpoints} webhooks`);
    if (outcome === 'full') throw unavailable('Too many changes wait to be stored; try again later');
    return outcome === 'written';
  }

  /** Each round but the last means that somebody else's change was made. */
  async function change(tenant: string, id: string, to: (stored: StoredWebhook) => StoredWebhook) {
    for (;;) {
      const before = await read(tenant, id);
      if (before === null) return null;
      const stored = decode(before);
      const next = { ...to(stored), updatedAt: Math.max(Date.now(), stored.updatedAt + 1) };
      if (await write(before, next)) return endpointOf(next);
    }
  }

  return {
    /** In no order. */
    list: async (tenant: string): Promise<Endpoint[]> =>
      (await whileRedisServes(client.hvals(endpointsKey(tenant)))).map((value) => endpointOf(decode(value))),
    find: async (tenant: string, id: string): Promise<Endpoint | null> => {
      const value = await read(tenant, id);
      return value === null ? null : endpointOf(decode(value));
    },
    /** @throws ApiError LIMIT_EXCEEDED, too */
    create: async (tenant: string, setting: WebhookSetting, secret: string): Promise<Endpoint> => {
      const id = `wh_${randomBytes(randomIdBytes).toString('base64url')}`;
      const [now, secrets] = [Date.now(), [{ secret, until: null }]];
      const made = { ...setting, disabledReason: null, createdAt: now, updatedAt: now, secrets };
      const stored: StoredWebhook = { v: 1, tenant, id, ...made };
      await write('', stored);
      return endpointOf(stored);
    },
    /** @param to is called again where others change it meanwhile; what it throws changes nothing. Null: there is none */
    change,
    /** Null: there is none. */
    remove: (tenant: string, id: string) => change(tenant, id, (stored) => ({ ...stored, url: '' })),
    /** One that is disabled keeps its reason. Null: there is none. */
    disable: (tenant: string, id: string, reason: DisabledReason) =>
      change(tenant, id, (stored) => ({ ...stored, disabledReason: stored.disabledReason ?? reason })),
  };
}

const randomIdBytes = 12;

/** Restores endpoints without secrets, which is why they are disabled; those that are there stay. May be repeated. */
export async function putEndpoints(client: RedisClient, records: readonly WebhookRecord[]): Promise<void> {
  for (const { tenant, id, ...record } of records) {
    const disabledReason = record.disabledReason ?? 'restored';
    const stored: StoredWebhook = { v: 1, tenant, id, ...record, disabledReason, secrets: [] };
    await whileRedisServes(client.hsetnx(endpointsKey(tenant), id, JSON.stringify(stored)));
    await whileRedisServes(client.hsetnx(wantedEventsKey, tenant, ''));
  }
}

/** Removes all of a tenant's. The change stands in no journal: its rows are removed as well. */
export async function removeEndpoints(client: RedisClient, tenant: string): Promise<void> {
  await whileRedisServes(client.unlink(endpointsKey(tenant)));
  await whileRedisServes(client.hdel(wantedEventsKey, tenant));
}
