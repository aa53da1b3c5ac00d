import { formulaVersion } from '../../domain/base/formula-version.js';
import { version } from '../../version.js';
import { formatJsonLine, formatTableLines } from './format.js';
import { headlineBlock, htmlPage, tag, textTag } from './page.js';

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

const renderRunInfo = (run: RunInfo, settings: Settings): string => {
  const pairs = listSettings(run, settings).flatMap(([name, text]) => [
    textTag('dt', {}, name),
    textTag('dd', {}, text),
  ]);
  return tag('dl', { class: 'run' }, ...pairs);
};

/** Result of a lab command: the parts of its text, its page and its JSON. */
export interface LabReport {
  readonly title: string;
  /** The first sentence sums up the result. */
  readonly headline: readonly string[];
  /** By name, defaults included. */
  readonly settings: Settings;
  readonly json: object;
  readonly text: readonly string[];
  /** Markup. */
  readonly sections: () => readonly string[];
}

/** Renders a format only if it is called. */
export const formatReport = ({ title, headline, settings, ...found }: LabReport, run: RunInfo) => ({
  json: () => formatJsonLine({ ...found.json, headline, run }, 6),
  text: () => {
    const info = formatTableLines(listSettings(run, settings), 'padEnd');
    return [headline.join('\n'), info.join('\n'), ...found.text].join('\n\n');
  },
  page: () => htmlPage(title, [headlineBlock(headline), renderRunInfo(run, settings), ...found.sections()]),
});
