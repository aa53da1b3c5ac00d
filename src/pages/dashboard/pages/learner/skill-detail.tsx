import { useEffect, useRef } from 'preact/hooks';
import {
  formatDay,
  formatDayTime,
  formatDecimal,
  formatPercent,
  formatPercentRange,
  formatPoints,
} from '../../base/format.js';
import { useLoad } from '../../base/load.js';
import { buildHref, updateQuery } from '../../base/route.js';
import { useViewer } from '../../base/viewer.js';
import { Button } from '../../parts/button.jsx';
import { Loaded } from '../../parts/loaded.jsx';
import { masteryMeaning } from '../../parts/mastery-meaning.jsx';
import { Badge, Facts, Stat, Stats } from '../../parts/stat.jsx';
import { describeConfidence } from './confidence-panel.jsx';
import { minSkillAnswers } from './evidence.jsx';
import { ExpectedTerms, type ExplanationProps, MasterySteps, NextAnswer } from './explanation.jsx';
import type { LearnerProps, LearnerSkill } from './learner-props.js';
import { SkillHistory } from './skill-history.jsx';
import { explainMissingEfficiency, SkillStates } from './skills-panel.jsx';

interface SkillDetailProps extends LearnerProps {
  readonly skill: LearnerSkill;
}

export function SkillDetail({ userId, skill, query, getSkillName }: SkillDetailProps) {
  const skillId = skill.skill_id;
  const { api } = useViewer();
  const heading = useRef<HTMLHeadingElement>(null);
  // The user chose the skill in a table or by a link.
  useEffect(() => {
    heading.current?.focus({ preventScroll: true });
    heading.current?.scrollIntoView({ block: 'start' });
  }, []);
  const explanationLoad = useLoad(
    (signal) => api.skillMastery(userId, skillId, { explain: true, steps: 50, signal }),
    [api, userId, skillId],
  );
  const { mastery = skill.mastery, explanation } = explanationLoad.data ?? {};
  return (
    <section class="panel skill-detail">
      <div class="row apart">
        <h2 tabIndex={-1} ref={heading}>
          Skill: <bdi>{getSkillName(skillId)}</bdi>
        </h2>
        <div class="row">
          <a href={buildHref('skills', [skillId])}>How everybody does on it</a>
          <Button onClick={() => updateQuery({ skill: null, by: null })}>Close</Button>
        </div>
      </div>
      <SkillTiles skill={skill} />
      <Loaded load={explanationLoad} subject="the explanation">
        {() => explanation && <ExpectedTerms explanation={explanation} />}
      </Loaded>
      <SkillHistory
        userId={userId}
        skillId={skillId}
        axis={query.by === 'time' ? 'time' : 'answer'}
        currentMastery={skill.mastery}
      />
      {explanation !== undefined && (
        <div class="stack">
          <MasterySteps explanation={explanation} />
          <div class="grid">
            <NextAnswer mastery={mastery} explanation={explanation} />
            <ParameterFacts explanation={explanation} />
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
        value={formatPercent(skill.expected_accuracy)}
        note={`${formatPercentRange(skill.expected_low, skill.expected_high)}, 80 % range`}
      >
        The share of the next answers that is expected to be right, on average questions of this skill. It
        also counts answers on other skills and the last few answers. The true share is in the range with a
        probability of 80 %.
      </Stat>
      <Stat
        label="Mastery now"
        value={formatPercent(skill.mastery)}
        note={<SkillStates skill={skill} />}
        tone={skill.mastered ? 'good' : undefined}
      >
        {masteryMeaning} The charts below show what moved it.
        {skill.total_attempts < minSkillAnswers &&
          ` After ${skill.total_attempts} answers it is still close to where everybody begins.`}
      </Stat>
      <Stat
        label="Forgotten since"
        value={`${formatPoints(lost)} points`}
        note={`${formatPercent(skill.mastery_at_last_attempt)} after the last answer, ${formatDay(skill.last_attempt_at)}`}
      >
        After one day without practice, what mastery has above its starting value begins to halve, every 30 to
        365 days: the more days with right answers there were, the slower.
      </Stat>
      <Stat
        label="Answers"
        value={skill.total_attempts}
        note={`${skill.correct_attempts} right, ${formatPercent(skill.correct_attempts / skill.total_attempts)}; since the first`}
      >
        All counted answers on this skill. Fewer than {minSkillAnswers} are too few to call it mastered or to
        advise on it.
      </Stat>
      <Stat
        label="Efficiency"
        value={formatDecimal(0)(skill.efficiency_index)}
        note={`${explainMissingEfficiency(skill) ?? 'of 100'}; ${formatDecimal(1)(skill.correct_per_minute)} right a minute`}
      >
        Accuracy, corrected for guessing, and time, compared with all learners of the skill; 50 is usual. Time
        counts only as far as answers are right, so fast wrong answers do not help.
      </Stat>
      <Stat
        label="Confidence"
        value={formatPoints(skill.confidence_bias)}
        note="points surer (+) or less sure (−) than right"
      >
        {describeConfidence(skill.confidence_bias)}
      </Stat>
    </Stats>
  );
}

const sourceTexts = {
  default: 'standard values: too little is known of the skill yet',
  fitted: 'fitted to the answers of all learners',
  manual: 'set by hand',
} as const;

function ParameterFacts({ explanation: { parameters } }: ExplanationProps) {
  const { p_init, p_learn, p_guess, p_slip, p_forget, source, version, fitted_at } = parameters;
  return (
    <section class="inner">
      <h3>Parameters in force</h3>
      <Facts
        facts={[
          ['Known before the first answer', formatPercent(p_init)],
          ['Learned by an answer', formatPercent(p_learn)],
          ['Right without knowing it (guess)', formatPercent(p_guess)],
          ['Wrong in spite of knowing it (slip)', formatPercent(p_slip)],
          ['Lost at an answer (forget)', formatPercent(p_forget)],
          [
            'Where they come from',
            <>
              <Badge tone="soft">{source}</Badge> {sourceTexts[source]}
              {fitted_at !== null && `, ${formatDayTime(fitted_at)} UTC`}; version {version}
            </>,
          ],
        ]}
      />
    </section>
  );
}
