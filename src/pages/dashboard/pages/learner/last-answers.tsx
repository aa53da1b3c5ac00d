import type { Attempt } from '../../../../client/types.js';
import { formatDay } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { useViewer } from '../../base/viewer.js';
import { Loaded } from '../../parts/loaded.jsx';
import { Panel } from '../../parts/stat.jsx';
import { buildSkillHref } from './advice.jsx';
import type { LearnerProps } from './learner-props.js';

const maxAnswers = 20;

export function LastAnswers(learner: LearnerProps) {
  const { api } = useViewer();
  const { userId } = learner;
  const load = useLoad((signal) => api.attempts(userId, { limit: maxAnswers, signal }), [api, userId]);
  return (
    <Panel title={`Last ${maxAnswers} answers`}>
      <Loaded load={load} subject="the last answers">
        {({ attempts }) =>
          attempts.length === 0 ? (
            <p class="soft">No stored answers yet. New answers appear after a few seconds.</p>
          ) : (
            <AnswerStrip {...learner} answers={attempts.toReversed()} />
          )
        }
      </Loaded>
    </Panel>
  );
}

interface AnswerStripProps extends LearnerProps {
  /** Oldest first. */
  readonly answers: readonly Attempt[];
}

const AnswerStrip = ({ answers, ...learner }: AnswerStripProps) => (
  <>
    <p>
      {answers.filter(({ is_correct }) => is_correct).length} of {answers.length} correct, from{' '}
      {formatDay(answers[0]?.occurred_at)} to {formatDay(answers.at(-1)?.occurred_at)}. Oldest first.
    </p>
    <ol class="strip">
      {answers.map((answer) => (
        <li key={answer.learner_seq}>
          <StripLink {...learner} answer={answer} />
        </li>
      ))}
    </ol>
  </>
);

function StripLink({ answer, ...learner }: LearnerProps & { readonly answer: Attempt }) {
  const { is_correct, skill_id, skill_ids, occurred_at } = answer;
  const names = skill_ids.map(learner.getSkillName).join(', ');
  const text = `${is_correct ? 'correct' : 'incorrect'}, ${formatDay(occurred_at)}: ${names}`;
  return (
    <a class={is_correct ? 'right' : 'wrong'} href={buildSkillHref(learner, skill_id)} title={text}>
      <span aria-hidden="true">{is_correct ? '●' : '✕'}</span> <span class="hidden">{text}</span>
    </a>
  );
}
