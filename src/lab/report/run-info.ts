import { formulaVersion } from '../../domain/base/formula-version.js';
import { version } from '../../version.js';
import { formatTableLines } from './format.js';
import { tag, textTag } from './page.js';

export type RunInfo = ReturnType<typeof createRunInfo>;
type Settings = Readonly<Record<string, string>>;

/** @param command with its options */
export const createRunInfo = (command: string) => ({
  version,
  formulaVersion: formulaVersion as number,
  /** RFC 3339, in UTC. */
  date: new Date().toISOString(),
  command,
});

const listSettings = ({ command, ...run }: RunInfo, settings: Settings): [name: string, text: string][] => {
  const date = `${run.date.slice(0, 16).replace('T', ' ')} UTC`;
  const created = `Skilltrace ${run.version}, model formulas ${run.formulaVersion}, ${date}`;
  return Object.entries({ Created: created, Command: command, ...settings });
};

/** @param settings by name, defaults included */
export function renderRunInfo(run: RunInfo, settings: Settings): string {
  const pairs = listSettings(run, settings).flatMap(([name, text]) => [
    textTag('dt', {}, name),
    textTag('dd', {}, text),
  ]);
  return tag('dl', { class: 'run' }, ...pairs);
}

export const formatRunInfo = (run: RunInfo, settings: Settings): string =>
  formatTableLines(listSettings(run, settings), 'padEnd').join('\n');
