import Type from 'typebox';
import { Compile } from 'typebox/compile';
import type { Compute } from '../../compute/compute.js';
import type { Call } from '../../contracts/access/call.js';
import { findSkillProblem, listSkillIds, questionSkillFields } from '../../contracts/answers/events.js';
import type { ItemCandidate } from '../../contracts/forecasts/forecast-tasks.js';
import { Id } from '../../contracts/schema/ids.js';
import { parseLargeJson } from '../../contracts/schema/json.js';
import { optionalNullable, validate, validationError } from '../../contracts/schema/validate.js';
import { nextItemsConstants } from '../../domain/advice/advice-constants.js';
import { difficultyConstants } from '../../domain/base/bkt-parameters.js';

const { maxItems, defaultLimit, target } = nextItemsConstants;

const Item = Type.Object({
  item_id: optionalNullable(Id),
  ...questionSkillFields,
  question_difficulty: optionalNullable(
    Type.Number({
      ...{ minimum: -difficultyConstants.limit, maximum: difficultyConstants.limit },
      description:
        'Difficulty from -3 to 3, as sent with answers. The service adds the difficulty learned from answers.',
    }),
  ),
});

export const NextItemsRequest = Type.Object(
  {
    items: Type.Array(Item, {
      ...{ minItems: 1, maxItems },
      description: 'Candidates. Of entries with the same `item_id`, the first counts.',
    }),
    limit: optionalNullable(Type.Integer({ minimum: 1, maximum: maxItems, default: defaultLimit })),
    target: optionalNullable(
      Type.Number({
        ...{ minimum: target.low, maximum: target.high, default: target.start },
        description: 'Desired probability of a correct answer.',
      }),
    ),
  },
  {
    examples: [
      {
        items: [
          { item_id: 'q-17', skill_id: 'linear-equations' },
          { item_id: 'q-18', skill_id: 'linear-equations', question_difficulty: 1.5 },
          { item_id: 'q-40', skill_ids: ['algebra', 'word-problems'] },
        ],
        limit: 3,
      },
    ],
  },
);
const requestValidator = Compile(NextItemsRequest);
/** Thirty values per item. */
const maxValues = 30_000;

const maxProblems = 8;

/** Does not register the skills. */
export async function selectNextItems(
  compute: Pick<Compute, 'nextItems'>,
  { tenant, body, throwIfDisconnected }: Call,
  userId: string,
): Promise<string> {
  const request = validate(requestValidator, await parseLargeJson(body, maxValues), 'request');
  const problems = request.items.flatMap((item, i) => {
    const problem = findSkillProblem(item);
    return problem === null ? [] : [{ ...problem, path: `items/${i}/${problem.path}` }];
  });
  if (problems.length > 0) throw validationError('request', ...problems.slice(0, maxProblems));
  const items = request.items.map(
    (item): ItemCandidate => ({
      itemId: item.item_id ?? null,
      skillIds: listSkillIds(item),
      listsSkills: Array.isArray(item.skill_ids),
      questionDifficulty: item.question_difficulty ?? null,
    }),
  );
  const task = {
    tenant,
    userId,
    items: JSON.stringify(items),
    limit: request.limit ?? defaultLimit,
    target: request.target ?? target.start,
  };
  return compute.nextItems(task, throwIfDisconnected);
}
