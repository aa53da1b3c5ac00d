import type { PartTrial } from '../../domain/fit/fit-tenant.js';
import { partLabels } from '../../domain/fit/prediction/model-parts.js';
import { formatNumber, formatSigned } from './format.js';
import type { Row } from './page.js';

export const partHead = ['Part', 'Log loss without', 'With', 'Change', 'Answers', 'Published'];

const capitalize = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

/** Losses on the held-out learners of the cross-fit. */
export const buildPartRows = (tried: readonly PartTrial[]): Row[] =>
  tried.map(({ part, answers, without, with: loss, published }) => [
    capitalize(partLabels[part]),
    without.toFixed(5),
    loss.toFixed(5),
    formatSigned(loss - without, 5),
    formatNumber(answers),
    published ? 'yes' : 'no',
  ]);
