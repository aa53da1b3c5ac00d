import * as Plot from '@observablehq/plot';
import { useMemo } from 'preact/hooks';
import { formatPoints, truncate } from '../../base/format.js';
import { Chart } from '../../parts/chart.jsx';
import { Panel } from '../../parts/stat.jsx';
import { type Column, createColumnBuilder } from '../../parts/table.jsx';
import { minSkillAnswers } from './evidence.jsx';
import type { NamedSkills } from './learner-props.js';

/** @param bias mean confidence minus share of right answers */
export function describeConfidence(bias: number | null): string {
  if (bias === null) return 'No answer came with a confidence, so nothing is known of it.';
  const figure = Math.abs(Math.round(100 * bias));
  const found =
    figure < 10
      ? 'About as sure as right.'
      : bias > 0
        ? `Surer than right, by ${figure} points: mistakes may go unnoticed.`
        : `Less sure than right, by ${figure} points: some encouragement may help.`;
  return `${found} It is the mean confidence (1 to 5 taken as 10 to 90 %) less the share right, over the answers that came with a confidence.`;
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
      about={`Is the learner as sure as right? Mean confidence (1 to 5 taken as 10 to 90 %) less the share right, in percentage points, since the first answer; skills with at least ${minSkillAnswers} answers, the ${maxSkills} furthest from 0.`}
    >
      <Chart
        title="Surer than right (+) or less sure (−)"
        about="To the right: surer than right, so mistakes may go unnoticed. To the left: better than believed. Within 10 points of 0 there is little to say."
        plot={plotBias}
        rows={rows}
        columns={columns}
        height={60 + 24 * Math.max(rows.length, 2)}
        empty="No answers with a confidence yet (confidence_score of an answer), on a skill with enough of them."
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
