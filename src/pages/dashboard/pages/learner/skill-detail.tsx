import { useEffect, useRef } from 'preact/hooks';
import {
  formatDay,
  formatDayTime,
  formatDecimal,
  formatMastery,
  formatPercent,
  formatPercentRange,
  formatPoints,
  formatSkillAccuracy,
  pluralize,
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
          <a href={buildHref('skills', [skillId])}>Statistics of this skill</a>
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
        getSkillName={getSkillName}
      />
      {explanation !== undefined && (
        <div class="stack">
          <MasterySteps explanation={explanation} getSkillName={getSkillName} />
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
        label="Expected accuracy"
        value={formatSkillAccuracy(skill.expected_accuracy)}
        note={`${formatPercentRange(skill.expected_low, skill.expected_high)}, 80 % range`}
      >
        Expected share of correct answers on questions of average difficulty. The estimate also uses answers
        on other skills and the most recent answers. The true share is in the range with a probability of 80
        %.
      </Stat>
      <Stat
        label="Mastery now"
        value={formatMastery(skill.mastery)}
        note={<SkillStates skill={skill} />}
        tone={skill.mastered ? 'good' : undefined}
      >
        {masteryMeaning} The charts below show how answers changed mastery.
        {skill.total_attempts < minSkillAnswers &&
          ` After ${pluralize(skill.total_attempts, 'answer')}, mastery is still close to its initial value.`}
      </Stat>
      <Stat
        label="Forgotten"
        value={`${formatPoints(lost)} points`}
        note={`${formatMastery(skill.mastery_at_last_attempt)} after the last answer, ${formatDay(skill.last_attempt_at)}`}
      >
        After one day without practice, mastery falls towards its initial value, with a half-life of 30 to 365
        days. More days with correct answers make the decline slower.
      </Stat>
      <Stat
        label="Answers"
        value={skill.total_attempts}
        note={`${skill.correct_attempts} correct (${formatPercent(skill.correct_attempts / skill.total_attempts)})`}
      >
        All counted answers on this skill. Mastered skills and recommendations need at least {minSkillAnswers}{' '}
        answers.
      </Stat>
      <Stat
        label="Efficiency"
        value={formatDecimal(0)(skill.efficiency_index)}
        note={`${explainMissingEfficiency(skill) ?? 'of 100'}; ${formatDecimal(1)(skill.correct_per_minute)} correct per minute`}
      >
        Accuracy (corrected for guessing) and time, compared with all learners of the skill. 50 is typical.
        Time has less weight at low accuracy, so fast incorrect answers do not help.
      </Stat>
      <Stat
        label="Confidence"
        value={formatPoints(skill.confidence_bias)}
        note="points; above 0: overconfident"
      >
        {describeConfidence(skill.confidence_bias)}
      </Stat>
    </Stats>
  );
}

const sourceTexts = {
  default: 'defaults or the average of the tenant; this skill has no fit',
  fitted: 'from the answers of all learners',
  manual: 'fits do not change them',
} as const;

function ParameterFacts({ explanation: { parameters } }: ExplanationProps) {
  const { p_init, p_learn, p_guess, p_slip, p_forget, source, version, fitted_at } = parameters;
  return (
    <section class="inner">
      <h3>Current parameters</h3>
      <Facts
        facts={[
          ['Known before the first answer', formatPercent(p_init)],
          ['Learned per answer', formatPercent(p_learn)],
          ['Correct without knowing the skill (guess)', formatPercent(p_guess)],
          ['Incorrect despite knowing the skill (slip)', formatPercent(p_slip)],
          ['Lost per answer (forget)', formatPercent(p_forget)],
          [
            'Source',
            <>
              <Badge tone="soft">{source}</Badge> {sourceTexts[source]}
              {fitted_at !== null && `, ${formatDayTime(fitted_at)}`}; version {version}
            </>,
          ],
        ]}
      />
    </section>
  );
}
