import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { validate, validationError } from '../schema/validate.js';

export const SettingsRequest = Type.Object(
  {
    time_zone: Type.String({
      ...{ minLength: 1, maxLength: 64 },
      description: 'IANA name, for example America/Los_Angeles.',
    }),
  },
  { examples: [{ time_zone: 'America/Los_Angeles' }] },
);
const settingsCheck = Compile(SettingsRequest);

/** @param known all names @returns the known spelling @throws ApiError INVALID_REQUEST */
export function parseTimeZone(body: unknown, known: readonly string[]): string {
  const { time_zone: sent } = validate(settingsCheck, body, 'settings');
  const found = known.find((name) => name.toLowerCase() === sent.toLowerCase());
  if (found !== undefined) return found;
  const message = `must be an IANA time zone, for example ${findNearest(sent, known)}`;
  throw validationError('settings', { path: 'time_zone', message });
}

/** By the share of common pairs of letters (Dice), of the whole name or of its last part. */
function findNearest(sent: string, known: readonly string[]): string | undefined {
  const pairs = listPairs(sent);
  const compare = (text: string): number => {
    const own = listPairs(text);
    return [...own].filter((pair) => pairs.has(pair)).length / (own.size + pairs.size);
  };
  const scores = known.map((name) => Math.max(compare(name), compare(name.slice(name.lastIndexOf('/') + 1))));
  return known[scores.indexOf(Math.max(...scores))];
}

function listPairs(text: string): Set<string> {
  const letters = `^${text.toLowerCase().replaceAll(/[^a-z0-9]/g, '')}`;
  return new Set(Array.from(letters, (_, i) => letters.slice(i, i + 2)));
}
