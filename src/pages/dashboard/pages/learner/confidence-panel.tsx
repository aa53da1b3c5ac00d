import * as Plot from '@observablehq/plot';
import { useMemo } from 'preact/hooks';
import { formatPoints, truncate } from '../../base/format.js';
import { Chart } from '../../parts/chart.jsx';
import { Panel } from '../../parts/stat.jsx';
import { type Column, createColumnBuilder } from '../../parts/table.jsx';
import { minSkillAnswers } from './evidence.jsx';
import type { NamedSkills } from './learner-props.js';

/** @param bias mean confidence minus share of correct answers */
export function describeConfidence(bias: number | null): string {
  if (bias === null) return 'No answers with a reported confidence.';
  const figure = Math.abs(Math.round(100 * bias));
  const found =
    figure < 10
      ? 'Confidence matches accuracy.'
      : bias > 0
        ? `Overconfident by ${figure} points: the learner may not notice mistakes.`
        : `Underconfident by ${figure} points: encouragement may help.`;
  return `${found} The value is the mean confidence (1 to 5 count as 10 to 90 %) minus the share of correct answers, over all answers with a confidence.`;
}

interface SkillBias {
  readonly id: string;
  readonly name: string;
  readonly bias: number;
  readonly answers: number;
}

const maxSkills = 15;

export function ConfidencePanel({ skills, getSkillName }: NamedSkills) {
  const rows = useMemo(
    () =>
      skills
        .flatMap(({ skill_id, confidence_bias, total_attempts }): SkillBias[] =>
          confidence_bias === null || total_attempts < minSkillAnswers
            ? []
            : [
                {
                  id: skill_id,
                  name: getSkillName(skill_id),
                  bias: confidence_bias,
                  answers: total_attempts,
                },
              ],
        )
        .toSorted((a, b) => Math.abs(b.bias) - Math.abs(a.bias))
        .slice(0, maxSkills)
        .toSorted((a, b) => b.bias - a.bias),
    [skills, getSkillName],
  );
  return (
    <Panel
      title="Confidence"
      about={`Mean confidence (1 to 5 count as 10 to 90 %) minus the share of correct answers, in percentage points, over all answers. Shows the ${maxSkills} largest differences of skills with at least ${minSkillAnswers} answers.`}
    >
      <Chart
        title="Overconfident (+) / underconfident (−)"
        about="Bars to the right: the learner is overconfident and may not notice mistakes. Bars to the left: the learner is underconfident. Grey bars (less than 10 points) mean a good match."
        plot={plotBias}
        rows={rows}
        columns={columns}
        height={60 + 24 * Math.max(rows.length, 2)}
        empty="No skill with enough answers has a reported confidence (field confidence_score)."
      />
    </Panel>
  );
}

const field = createColumnBuilder<SkillBias>();
const columns: readonly Column<SkillBias>[] = [
  field('Skill', 'name'),
  field('Points', 'bias', { format: formatPoints }),
  field('Answers', 'answers'),
];

function plotBias(rows: readonly SkillBias[]): Plot.PlotOptions {
  const reach = Math.max(0.2, ...rows.map(({ bias }) => Math.abs(bias)));
  return {
    marginLeft: 170,
    x: {
      domain: [-reach, reach],
      label: 'points',
      grid: true,
      ticks: 5,
      tickFormat: (share: number) => formatPoints(share),
    },
    y: {
      type: 'band',
      domain: rows.map(({ id }) => id),
      label: null,
      tickFormat: (_, i) => truncate(rows[i]?.name ?? '', 26),
      padding: 0.25,
    },
    marks: [
      Plot.barX(rows, {
        ...{ x: 'bias', y: 'id', title: ({ name, bias }: SkillBias) => `${name}: ${formatPoints(bias)}` },
        fill: ({ bias }: SkillBias) =>
          Math.abs(bias) < 0.1 ? 'var(--bar)' : bias > 0 ? 'var(--b)' : 'var(--a)',
      }),
      Plot.ruleX([0], { stroke: 'var(--soft)' }),
    ],
  };
}
