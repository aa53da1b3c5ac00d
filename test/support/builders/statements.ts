/** xAPI statements: an answer, and a voiding statement. */
import { randomUUID } from 'node:crypto';

export type Json = { readonly [name: string]: unknown };

export const adl = (verb: string): Json => ({ id: `http://adlnet.gov/expapi/verbs/${verb}` });
export const skillIri = 'http://school.example/skills/algebra';

/** An answer of a new learner. */
export const statement = (change: Json = {}): Json => ({
  id: randomUUID(),
  actor: { mbox: `mailto:${randomUUID()}@school.example` },
  verb: adl('answered'),
  object: { id: 'http://school.example/items/1' },
  result: { success: true, duration: 'PT12.6S' },
  context: { contextActivities: { parent: [{ id: skillIri }] } },
  ...change,
});

export const voiding = (id: unknown): Json => ({
  actor: { mbox: 'mailto:teacher@school.example' },
  verb: adl('voided'),
  object: { objectType: 'StatementRef', id },
});
