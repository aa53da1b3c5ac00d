import { formatNumber, formatSigned } from '../report/format.js';
import { htmlTable, minObservations, type Row, section } from '../report/page.js';
import { createCell, formatFigure } from './figures.js';
import type { SkillFigures } from './scores.js';

const maxSkills = 200;
const largeGap = 0.05;

export function skillsSection(skills: readonly SkillFigures[]): string {
  const tested = skills.filter(({ answers }) => answers > 0).sort((a, b) => b.answers - a.answers);
  const others = formatNumber(tested.length - maxSkills);
  const rest = tested.length > maxSkills ? ` ${others} more skills are not shown.` : '';
  const text = `Served model, by number of test answers. An answer to a question with several skills counts for each of them. The gap is the mean prediction minus the share correct. It is marked from ${largeGap} on; the largest of many gaps are partly chance. Figures in grey italics have fewer than ${minObservations} answers and are not reliable.${rest} The option --parameters OUT writes all skills to a file, with the parameters p_init to p_forget of each fold.`;
  const head = [
    ...['Skill', 'Test answers', 'Learners', 'Share correct', 'Mean prediction', 'Gap', 'AUC', 'Log loss'],
    ...Object.keys(tested[0]?.parameters ?? {}),
  ];
  return section('Skills', text, htmlTable(head, tested.slice(0, maxSkills).map(skillRow), true));
}

function skillRow({ skillId, answers, learners, parameters, ...figures }: SkillFigures): Row {
  const { correct, predicted, auc, logLoss } = figures;
  const gap = predicted - correct;
  const cell = (value: number | null) => createCell(formatFigure(value, 3), answers);
  return [
    ...[skillId, formatNumber(answers), formatNumber(learners), cell(correct), cell(predicted)],
    createCell(formatSigned(gap), answers, Math.abs(gap) >= largeGap ? 'off' : undefined),
    ...[cell(auc), cell(logLoss), ...Object.values(parameters ?? {}).map((value) => formatFigure(value, 3))],
  ];
}
