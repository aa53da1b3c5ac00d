import type { Skill } from '../../../../client/types.js';
import { formatDay, formatPercent, pluralize } from '../../base/format.js';
import { buildHref } from '../../base/route.js';
import { Panel, Stat, Stats } from '../../parts/stat.jsx';

export const originTexts: Readonly<
  Record<Skill['origin'], { readonly short: string; readonly long: (skill: Skill) => string }>
> = {
  defaults: {
    short: 'defaults',
    long: () => 'Default parameters of all skills. No fit has been published yet.',
  },
  tenant_prior: {
    short: 'tenant average',
    long: ({ learners, answers }) =>
      `Parameters of a typical skill of this tenant. ${pluralize(answers, 'answer')} of ${pluralize(learners, 'learner')} were not enough for separate parameters, or separate parameters did not predict better.`,
  },
  fit: {
    short: 'fitted',
    long: ({ learners, answers }) =>
      `Fitted to ${pluralize(answers, 'answer')} of ${pluralize(learners, 'learner')}. They predicted unseen answers no worse than the previous parameters.`,
  },
  manual: {
    short: 'manual',
    long: () => 'Set manually. Fits do not change them.',
  },
};

export const ParametersPart = ({ skill }: { skill: Skill }) => {
  const { parameters } = skill;
  const { p_init, p_learn, p_guess, p_slip, p_forget, version, fitted_at } = parameters;
  return (
    <Panel title="Current parameters" about={originTexts[skill.origin].long(skill)}>
      <Stats>
        <Stat label="Known before" value={formatPercent(p_init)} note="p_init">
          Probability that a learner knows the skill before the first answer.
        </Stat>
        <Stat label="Learned per answer" value={formatPercent(p_learn)} note="p_learn">
          Probability that a learner who does not know the skill learns it with one answer. A low value means
          that practice alone teaches little.
        </Stat>
        <Stat label="Guess" value={formatPercent(p_guess)} note="p_guess">
          Probability of a correct answer without knowing the skill. A value near 50 % means that questions
          are easy to guess.
        </Stat>
        <Stat label="Slip" value={formatPercent(p_slip)} note="p_slip">
          Probability of an incorrect answer despite knowing the skill.
        </Stat>
        <Stat label="Forget" value={formatPercent(p_forget)} note="p_forget">
          Probability that a learner who knows the skill loses it with one answer.
        </Stat>
      </Stats>
      <p class="soft">
        Version {version}
        {fitted_at !== null && `, published on ${formatDay(fitted_at)}`}. Answers faster than{' '}
        {skill.rapid_threshold_seconds} seconds count as guesses.{' '}
        {skill.typical_seconds !== null && `Median time: ${skill.typical_seconds} seconds. `}
        <a href={buildHref('model', [], { skill: skill.skill_id })}>Predictions and results of this skill</a>
      </p>
    </Panel>
  );
};
