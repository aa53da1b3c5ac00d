import { partTexts } from '../../domain/fit/prediction/parts.js';
import type { TriedPart } from '../../domain/fit/tenant.js';
import { grouped } from './numbers.js';
import type { Row } from './page.js';

export const partHead = ['Part', 'Log loss without', 'With', 'Change', 'Answers', 'Published'];

const capitalized = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

/** Losses on the held-out learners of the cross-fit. */
export const partRows = (tried: readonly TriedPart[]): Row[] =>
  tried.map(({ part, answers, without, with: loss, published }) => [
    capitalized(partTexts[part]),
    without.toFixed(5),
    loss.toFixed(5),
    `${loss < without ? '\u2212' : '+'}${Math.abs(loss - without).toFixed(5)}`,
    grouped(answers),
    published ? 'yes' : 'no',
  ]);
