import type { Prediction } from '../../../../client/types.js';
import { href } from '../../base/route.js';
import { Panel } from '../../parts/stat.jsx';
import type { LearnerProps } from './learner-props.js';

interface AdviceProps extends LearnerProps {
  readonly of: Prediction;
}

export function Advice({ userId, query, of, skills, nameOf }: AdviceProps) {
  // A learner page has no details of skills without answers.
  const linkTo = (id: string): string =>
    skills.some(({ skill_id }) => skill_id === id)
      ? href('learner', [userId], { ...query, skill: id })
      : href('skills', [id]);

  return (
    <Panel
      title="What to do next"
      about={
        of.recommendations.length === 0
          ? undefined
          : 'Ordered by what an hour of practice is expected to bring; points are rough, and left out with fewer than 20 answers in a section.'
      }
    >
      {of.recommendations.length === 0 && <p>{of.recommendations_reason ?? 'Nothing stands out now.'}</p>}
      <ol class="advice">
        {of.recommendations.map((text, i) => {
          const skillId = of.recommendation_codes[i]?.skill_id ?? null;
          return (
            <li key={text}>
              {text}{' '}
              {skillId !== null && (
                <a href={linkTo(skillId)}>
                  See <bdi>{nameOf(skillId)}</bdi>
                </a>
              )}
            </li>
          );
        })}
      </ol>
    </Panel>
  );
}
