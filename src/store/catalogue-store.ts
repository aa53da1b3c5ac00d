/** Catalogues: what tenants have set of their skills. */
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { skillRow } from '../contracts/journal.js';
import { type Catalogue, catalogueOf, type SkillEntry } from '../domain/catalogue.js';
import { maxSkills, type SkillSetting } from '../domain/skill-setting.js';
import { unavailable } from '../errors.js';
import type { CatalogueStore, SkillWrite, SkillWritten } from '../services/ports.js';
import { putSkillsScript } from './catalogue-scripts.js';
import { type RedisClient, resultsOf, whileRedisServes } from './client.js';
import { catalogueJournalKey, catalogueKey, catalogueRevisionsKey, journalBound, metaKey } from './keys.js';
import { addKnownSkills } from './known-skills.js';
import { replicated } from './replication.js';

/** Skills of one script call: it must not hold Redis up. */
const chunkSkills = 200;

const Probability = Type.Number({ exclusiveMinimum: 0, exclusiveMaximum: 1 });
const Stored = Type.Object({
  v: Type.Literal(1),
  revision: Type.Integer({ minimum: 1 }),
  updatedAt: Type.Integer({ minimum: 0 }),
  name: Type.Union([Type.String(), Type.Null()]),
  section: Type.Union([Type.Literal('math'), Type.Literal('rw'), Type.Null()]),
  weight: Type.Number({ exclusiveMinimum: 0 }),
  parameters: Type.Union([
    Type.Object({ pInit: Probability, pLearn: Probability, pGuess: Probability, pSlip: Probability }),
    Type.Null(),
  ]),
});
const storedCheck = Compile(Stored);

/** @throws Error for an entry that this version of the service cannot read */
function decodeEntry(value: string): SkillEntry {
  const stored: unknown = JSON.parse(value);
  if (!storedCheck.Check(stored))
    throw new Error('a stored entry of a catalogue is not known to this version');
  const { v: _, ...entry } = stored;
  return entry;
}

/** The entry after revision and time, which the script decides. */
const encodeSetting = ({ name, section, weight, parameters }: SkillSetting): string =>
  JSON.stringify({ name, section, weight, parameters }).slice(1);

/**
 * Mark of the tenant's catalogue, another one after every change; '' before the first. It has the number of changes
 * and the time, for a Redis that lost its last second counts the same numbers again.
 */
export const catalogueMark = async (client: RedisClient, tenant: string): Promise<string> =>
  (await whileRedisServes(client.hget(catalogueRevisionsKey, tenant))) ?? '';

/** Puts entries back as they were; the tenant's mark is for the caller to put behind them. */
export async function putCatalogueEntries(
  client: RedisClient,
  tenant: string,
  entries: readonly (SkillEntry & { readonly skillId: string })[],
): Promise<void> {
  const fields = entries.flatMap(({ skillId, revision, updatedAt, ...setting }) => [
    skillId,
    `{"v":1,"revision":${revision},"updatedAt":${updatedAt},${encodeSetting(setting)}`,
  ]);
  await whileRedisServes(client.hset(catalogueKey(tenant), ...fields));
}

export interface MarkedCatalogue {
  readonly mark: string;
  readonly catalogue: Catalogue;
}

/** The whole catalogue as of one moment. */
export async function readCatalogue(client: RedisClient, tenant: string): Promise<MarkedCatalogue> {
  const both = client.multi().hget(catalogueRevisionsKey, tenant).hgetall(catalogueKey(tenant));
  const [found, skills] = await whileRedisServes(resultsOf(both));
  const mark = typeof found === 'string' ? found : '';
  const entries = Object.entries(skills as Record<string, string>).map(
    ([skillId, value]) => [skillId, decodeEntry(value)] as const,
  );
  return { mark, catalogue: catalogueOf(Number(mark.split(' ', 1)[0]), new Map(entries)) };
}

export const createCatalogueStore = (client: RedisClient): CatalogueStore => ({
  put: async (tenant, write, now) => {
    const [written] = await putSkills(client, tenant, [write], now);
    return written as SkillWritten;
  },
});

/**
 * Writes skills; those that are written are known from then on.
 *
 * They are noted as known after they are written, for only then is it sure which they are. Whoever dies in between
 * leaves some too few, until they are answered, or set again by a change.
 *
 * @param bound most entries of the journal
 * @returns one result for each, in their order
 * @throws ApiError UNAVAILABLE, also for a Redis that came back empty, and where the journal is full: those before
 * may be written
 */
export async function putSkills(
  client: RedisClient,
  tenant: string,
  writes: readonly SkillWrite[],
  now: number,
  bound = journalBound,
): Promise<SkillWritten[]> {
  if ((await whileRedisServes(client.exists(metaKey))) === 0) {
    throw unavailable('The state store came back empty and has to be rebuilt first');
  }
  const results: SkillWritten[] = [];
  for (let at = 0; at < writes.length; at += chunkSkills) {
    const chunk = writes.slice(at, at + chunkSkills);
    const replies = await putChunk(client, tenant, chunk, now, bound);
    const written = chunk.flatMap(({ skillId }, i) => (refusals.has(replies[i] as string) ? [] : [skillId]));
    if (written.length > 0) await addKnownSkills(client, tenant, written);
    results.push(...replies.map(writtenOf));
  }
  return results;
}

/** What the script says of a skill that it did not write. */
const refusals: ReadonlySet<string> = new Set(['mismatch', 'full', 'journal']);

/** @returns what the script says of each */
async function putChunk(
  client: RedisClient,
  tenant: string,
  chunk: readonly SkillWrite[],
  now: number,
  bound: number,
): Promise<string[]> {
  const keys = [catalogueKey(tenant), catalogueRevisionsKey, catalogueJournalKey];
  const skills = chunk.flatMap(({ skillId, setting, ifRevision }) => [
    skillId,
    ifRevision === null ? '' : ` ${ifRevision.join(' ')} `,
    encodeSetting(setting),
    skillRow({ tenant, skillId, ...setting }),
  ]);
  const put = () =>
    client.eval(putSkillsScript, keys.length, ...keys, tenant, now, maxSkills, bound, ...skills);
  return (await replicated(client, catalogueRevisionsKey, () => whileRedisServes(put()))) as string[];
}

function writtenOf(result: string): SkillWritten {
  if (result === 'mismatch' || result === 'full') return { status: result };
  if (result === 'journal') throw unavailable('Too many changes wait to be stored; try again later');
  return { status: 'written', entry: decodeEntry(result) };
}
