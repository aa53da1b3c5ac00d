import { useEffect, useRef } from 'preact/hooks';
import { day, dayAndTime, decimal, percent, percentRange, points } from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { href, look } from '../../base/route.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { masteryMeaning } from '../../parts/mastery-meaning.jsx';
import { Badge, Facts, Stat, Stats } from '../../parts/stat.jsx';
import { confidenceText } from './confidence.jsx';
import { enoughOnSkill } from './evidence.jsx';
import { SkillHistory } from './history.jsx';
import type { LearnerProps, LearnerSkill } from './learner-props.js';
import { efficiencyNote, States } from './skills.jsx';
import { ExpectedTerms, type ExplanationProps, NextAnswer, Steps } from './steps.jsx';

interface SkillDetailProps extends LearnerProps {
  readonly skill: LearnerSkill;
}

export function SkillDetail({ userId, skill, query, nameOf }: SkillDetailProps) {
  const skillId = skill.skill_id;
  const { api } = useViewer();
  const heading = useRef<HTMLHeadingElement>(null);
  // The user chose the skill in a table or by a link.
  useEffect(() => {
    heading.current?.focus({ preventScroll: true });
    heading.current?.scrollIntoView({ block: 'start' });
  }, []);
  const explained = useLoad(
    (signal) => api.skillMastery(userId, skillId, { explain: true, steps: 50, signal }),
    [api, userId, skillId],
  );
  const { mastery = skill.mastery, explanation } = explained.data ?? {};
  return (
    <section class="panel skill-detail">
      <div class="row apart">
        <h2 tabIndex={-1} ref={heading}>
          Skill: <bdi>{nameOf(skillId)}</bdi>
        </h2>
        <div class="row">
          <a href={href('skills', [skillId])}>How everybody does on it</a>
          <Button onClick={() => look({ skill: null, by: null })}>Close</Button>
        </div>
      </div>
      <SkillTiles skill={skill} />
      <Loaded of={explained} what="the explanation">
        {() => explanation && <ExpectedTerms of={explanation} />}
      </Loaded>
      <SkillHistory
        userId={userId}
        skillId={skillId}
        by={query.by === 'time' ? 'time' : 'answer'}
        now={skill.mastery}
      />
      {explanation !== undefined && (
        <div class="stack">
          <Steps of={explanation} />
          <div class="grid">
            <NextAnswer mastery={mastery} of={explanation} />
            <Parameters of={explanation} />
          </div>
        </div>
      )}
    </section>
  );
}

function SkillTiles({ skill }: { readonly skill: LearnerSkill }) {
  const lost = skill.mastery - skill.mastery_at_last_attempt;
  return (
    <Stats>
      <Stat
        label="Expected correct"
        value={percent(skill.expected_accuracy)}
        note={`${percentRange(skill.expected_low, skill.expected_high)}, 80 % range`}
      >
        The share of the next answers that is expected to be right, on average questions of this skill. It
        also counts answers on other skills and the last few answers. The true share is in the range with a
        probability of 80 %.
      </Stat>
      <Stat
        label="Mastery now"
        value={percent(skill.mastery)}
        note={<States skill={skill} />}
        look={skill.mastered ? 'good' : undefined}
      >
        {masteryMeaning} The charts below show what moved it.
        {skill.total_attempts < enoughOnSkill &&
          ` After ${skill.total_attempts} answers it is still close to where everybody begins.`}
      </Stat>
      <Stat
        label="Forgotten since"
        value={`${points(lost)} points`}
        note={`${percent(skill.mastery_at_last_attempt)} after the last answer, ${day(skill.last_attempt_at)}`}
      >
        After one day without practice, what mastery has above its starting value begins to halve, every 30 to
        365 days: the more days with right answers there were, the slower.
      </Stat>
      <Stat
        label="Answers"
        value={skill.total_attempts}
        note={`${skill.correct_attempts} right, ${percent(skill.correct_attempts / skill.total_attempts)}; since the first`}
      >
        All counted answers on this skill. Fewer than {enoughOnSkill} are too few to call it mastered or to
        advise on it.
      </Stat>
      <Stat
        label="Efficiency"
        value={decimal(0)(skill.efficiency_index)}
        note={`${efficiencyNote(skill) ?? 'of 100'}; ${decimal(1)(skill.correct_per_minute)} right a minute`}
      >
        Accuracy, corrected for guessing, and time, compared with all learners of the skill; 50 is usual. Time
        counts only as far as answers are right, so fast wrong answers do not help.
      </Stat>
      <Stat
        label="Confidence"
        value={points(skill.confidence_bias)}
        note="points surer (+) or less sure (−) than right"
      >
        {confidenceText(skill.confidence_bias)}
      </Stat>
    </Stats>
  );
}

const sources = {
  default: 'standard values: too little is known of the skill yet',
  fitted: 'fitted to the answers of all learners',
  manual: 'set by hand',
} as const;

function Parameters({ of: { parameters } }: ExplanationProps) {
  const { p_init, p_learn, p_guess, p_slip, p_forget, source, version, fitted_at } = parameters;
  return (
    <section class="inner">
      <h3>Parameters in force</h3>
      <Facts
        of={[
          ['Known before the first answer', percent(p_init)],
          ['Learned by an answer', percent(p_learn)],
          ['Right without knowing it (guess)', percent(p_guess)],
          ['Wrong in spite of knowing it (slip)', percent(p_slip)],
          ['Lost at an answer (forget)', percent(p_forget)],
          [
            'Where they come from',
            <>
              <Badge look="soft">{source}</Badge> {sources[source]}
              {fitted_at !== null && `, ${dayAndTime(fitted_at)} UTC`}; version {version}
            </>,
          ],
        ]}
      />
    </section>
  );
}
