import { formatJsonLine } from './format.js';
import { headlineBlock, htmlPage } from './page.js';
import { formatRunInfo, type RunInfo, renderRunInfo } from './run-info.js';

/** Result of a lab command, for each format. */
export interface LabReport {
  readonly title: string;
  /** The first sentence sums up the result. */
  readonly headline: readonly string[];
  readonly settings: Readonly<Record<string, string>>;
  readonly json: object;
  readonly text: readonly string[];
  /** Markup. */
  readonly sections: () => readonly string[];
}

export const serializeReport = ({ json, headline }: LabReport, run: RunInfo): string =>
  formatJsonLine({ ...json, headline, run }, 6);

export const formatReport = ({ headline, settings, text }: LabReport, run: RunInfo): string =>
  [headline.join('\n'), formatRunInfo(run, settings), ...text].join('\n\n');

export const renderReport = ({ title, headline, settings, sections }: LabReport, run: RunInfo): string =>
  htmlPage(title, [headlineBlock(headline), renderRunInfo(run, settings), ...sections()]);
