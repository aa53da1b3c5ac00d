import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { validate, validationError } from '../schema/validate.js';

export const SettingsRequest = Type.Object(
  { time_zone: Type.String({ description: 'IANA name, for example America/Los_Angeles.' }) },
  { examples: [{ time_zone: 'America/Los_Angeles' }] },
);
const settingsCheck = Compile(SettingsRequest);

/** @param known all names @returns the known spelling @throws ApiError INVALID_REQUEST */
export function parseTimeZone(body: unknown, known: readonly string[]): string {
  const { time_zone: sent } = validate(settingsCheck, body, 'settings');
  const found = known.find((name) => name.toLowerCase() === sent.toLowerCase());
  if (found !== undefined) return found;
  const nearest = known.toSorted((a, b) => compareNames(b, sent) - compareNames(a, sent))[0];
  const message = `must be an IANA time zone, for example ${nearest}`;
  throw validationError('settings', { path: 'time_zone', message });
}

/** Share of common pairs of letters (Dice), for the whole name or its last part. */
const compareNames = (name: string, sent: string): number =>
  Math.max(
    ...[name, name.slice(name.lastIndexOf('/') + 1)].map((text) => {
      const [a, b] = [listPairs(text), listPairs(sent)];
      return (2 * [...a].filter((pair) => b.has(pair)).length) / (a.size + b.size);
    }),
  );

function listPairs(text: string): Set<string> {
  const letters = `^${text.toLowerCase().replaceAll(/[^a-z0-9]/g, '')}`;
  return new Set(Array.from(letters, (_, i) => letters.slice(i, i + 2)));
}
