import { version } from '../../version.js';
import { tag, textTag } from './page.js';

export interface RunInfo {
  readonly version: string;
  /** RFC 3339, in UTC. */
  readonly date: string;
  /** With its options. */
  readonly command: string;
}

export const createRunInfo = (command: string): RunInfo => ({
  version,
  date: new Date().toISOString(),
  command,
});

/** @param settings by name, defaults included */
export function renderRunInfo(run: RunInfo, settings: Readonly<Record<string, string>>): string {
  const entries = { Created: formatRunTitle(run), Command: run.command, ...settings };
  const pairs = Object.entries(entries).flatMap(([name, text]) => [
    textTag('dt', {}, name),
    textTag('dd', {}, text),
  ]);
  return tag('dl', { class: 'run' }, ...pairs);
}

export const formatRunTitle = ({ version, date }: RunInfo): string =>
  `Skilltrace ${version}, ${date.slice(0, 16).replace('T', ' ')} UTC`;
