import type { Skill } from '../../../../client/types.js';
import { formatDay, formatPercent, pluralize } from '../../base/format.js';
import { buildHref } from '../../base/route.js';
import { Panel, Stat, Stats } from '../../parts/stat.jsx';

export const originTexts: Readonly<
  Record<Skill['origin'], { readonly short: string; readonly long: (skill: Skill) => string }>
> = {
  defaults: {
    short: 'defaults',
    long: () => 'They are the defaults for every skill: no fit has been published yet.',
  },
  tenant_prior: {
    short: 'as your other skills',
    long: ({ learners, answers }) =>
      `They are those of a typical skill of yours: ${pluralize(answers, 'answer')} of ${pluralize(learners, 'learner')} were too few to tell it apart, or parameters of its own would not have predicted better.`,
  },
  fit: {
    short: 'fitted',
    long: ({ learners, answers }) =>
      `They were found from ${pluralize(answers, 'answer')} of ${pluralize(learners, 'learner')}, and predicted answers that the fit had not seen better than those before them.`,
  },
  manual: {
    short: 'by hand',
    long: () => 'They were set by hand; a fit does not change them.',
  },
};

export const ParametersPart = ({ skill }: { skill: Skill }) => {
  const { parameters } = skill;
  const { p_init, p_learn, p_guess, p_slip, p_forget, version, fitted_at } = parameters;
  return (
    <Panel title="Parameters in force" about={originTexts[skill.origin].long(skill)}>
      <Stats>
        <Stat label="Known before" value={formatPercent(p_init)} note="p_init">
          Probability that a learner knows the skill before the first answer on it.
        </Stat>
        <Stat label="Learned by an answer" value={formatPercent(p_learn)} note="p_learn">
          Probability that who does not know it learns it at an answer. Low: practice alone teaches little.
        </Stat>
        <Stat label="Guessed" value={formatPercent(p_guess)} note="p_guess">
          Probability of a right answer without knowing the skill. Near 50 %: questions give their answers
          away.
        </Stat>
        <Stat label="Slipped" value={formatPercent(p_slip)} note="p_slip">
          Probability of a wrong answer of somebody who knows it.
        </Stat>
        <Stat label="Forget" value={formatPercent(p_forget)} note="p_forget">
          Probability that a learner with mastery loses it at an answer.
        </Stat>
      </Stats>
      <p class="soft">
        Version {version}
        {fitted_at !== null && `, published on ${formatDay(fitted_at)}`}. An answer faster than{' '}
        {skill.rapid_threshold_seconds} seconds counts as a guess
        {skill.typical_seconds !== null && `; half of them take ${skill.typical_seconds} seconds or less`}.{' '}
        <a href={buildHref('model', [], { skill: skill.skill_id })}>
          How well predictions hold on this skill
        </a>
      </p>
    </Panel>
  );
};
