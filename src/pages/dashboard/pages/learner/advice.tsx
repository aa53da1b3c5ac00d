import type { Prediction } from '../../../../client/types.js';
import { buildHref } from '../../base/route.js';
import { Panel } from '../../parts/stat.jsx';
import type { LearnerProps } from './learner-props.js';

interface AdviceProps extends LearnerProps {
  readonly prediction: Prediction;
}

export function Advice({ userId, query, prediction, skills, getSkillName }: AdviceProps) {
  // A learner page has no details of skills without answers.
  const buildLink = (id: string): string =>
    skills.some(({ skill_id }) => skill_id === id)
      ? buildHref('learner', [userId], { ...query, skill: id })
      : buildHref('skills', [id]);

  return (
    <Panel
      title="Recommendations"
      about={
        prediction.recommendations.length === 0
          ? undefined
          : 'Sorted by the expected gain per hour of practice. Points are rough estimates, shown from 20 answers per section.'
      }
    >
      {prediction.recommendations.length === 0 && (
        <p>{prediction.recommendations_reason ?? 'No recommendations.'}</p>
      )}
      <ol class="advice">
        {prediction.recommendations.map((text, i) => {
          const skillId = prediction.recommendation_codes[i]?.skill_id ?? null;
          return (
            <li key={text}>
              {text}{' '}
              {skillId !== null && (
                <a href={buildLink(skillId)}>
                  Open <bdi>{getSkillName(skillId)}</bdi>
                </a>
              )}
            </li>
          );
        })}
      </ol>
    </Panel>
  );
}
