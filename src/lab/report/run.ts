/** What a report says of the run that made it. */
import { version } from '../../version.js';
import { tag, textTag } from './page.js';

export interface Run {
  readonly version: string;
  /** RFC 3339, in UTC. */
  readonly date: string;
  /** As it was given, with its options. */
  readonly command: string;
}

export const runOf = (command: string): Run => ({ version, date: new Date().toISOString(), command });

/** @param settings by name, those that were not given as they came out to be */
export function runList(run: Run, settings: Readonly<Record<string, string>>): string {
  const entries = { Made: runTitle(run), Command: run.command, ...settings };
  const pairs = Object.entries(entries).flatMap(([name, text]) => [
    textTag('dt', {}, name),
    textTag('dd', {}, text),
  ]);
  return tag('dl', { class: 'run' }, ...pairs);
}

/** On one line, for a terminal. */
export const runTitle = ({ version, date }: Run): string =>
  `Skilltrace ${version}, ${date.slice(0, 16).replace('T', ' ')} UTC`;
