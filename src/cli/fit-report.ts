/** What a fit reports: a summary for people, and one line of JSON. */
import type { AccuracyReport } from '../domain/fit/accuracy/fit.js';
import type { Comparison, FitReport } from '../domain/fit/report.js';
import { grouped } from '../lab/report/numbers.js';
import type { TenantFit } from '../services/models/fit-models.js';
import type { KeptVersion } from '../store/models/model-store.js';

export function fitsText(fits: readonly TenantFit[]): string {
  return fits.length === 0 ? 'There are no answers to fit on' : fits.map(fitText).join('\n');
}

function fitText({ tenant, outcome, version, report }: TenantFit): string {
  const lines = [`Tenant ${tenant}: ${words[outcome]}, version ${version} is in force`];
  if (report === null) return lines.join('\n');
  const sample = report.sampledOneIn === 1 ? '' : `, one learner in ${report.sampledOneIn}`;
  const published = report.skills.filter((skill) => skill.published).length;
  lines.push(
    `  ${grouped(report.answers)} answers of ${grouped(report.learners)} learners${sample} in ${report.seconds.toFixed(1)} s`,
    `  ${published} of ${report.skills.length} skills published, the others held back or kept`,
    `  log loss of BKT on held-out learners ${compared(report.bkt)}`,
    `  log loss of the served probability ${compared(report.served)}`,
    `  forecasts of shares ${accuracyText(report.accuracy)}`,
  );
  const worse = report.skills.filter(({ reason }) => reason.startsWith('held-out'));
  for (const { skillId, reason } of worse.slice(0, shownSkills)) lines.push(`    ${skillId}: ${reason}`);
  if (worse.length > shownSkills) lines.push(`    and ${worse.length - shownSkills} more`);
  return lines.join('\n');
}

function accuracyText({ cases, published, reason, ...figures }: AccuracyReport): string {
  const outcome = published ? 'published' : `kept as they were: ${reason}`;
  const { oldLogLoss, newLogLoss, oldCoverage80, newCoverage80 } = figures;
  if (newLogLoss === null || newCoverage80 === null) return outcome;
  const before = (value: number | null): string => (value === null ? '' : `${value.toFixed(4)} before, `);
  return [
    outcome,
    `log loss ${before(oldLogLoss)}${newLogLoss.toFixed(4)} now`,
    `coverage of the 80 % interval ${before(oldCoverage80)}${newCoverage80.toFixed(4)} now (${grouped(cases)} forecasts)`,
  ].join('; ');
}

const words: Readonly<Record<TenantFit['outcome'], string>> = {
  published: 'published',
  not_better: 'nothing better than what is in force',
  nothing_new: 'no new answers since the last fit',
  too_few: 'too few learners to fit on',
  superseded: 'another version came first',
  dry_run: 'would be published',
};

const shownSkills = 10;

const compared = ({ answers, oldLogLoss, newLogLoss }: Comparison): string =>
  oldLogLoss === null || newLogLoss === null
    ? 'not measured: no answers'
    : `${oldLogLoss.toFixed(4)} before, ${newLogLoss.toFixed(4)} now (${grouped(answers)} answers)`;

export const fitsJson = (fits: readonly TenantFit[]): string =>
  JSON.stringify({ tenants: fits.map((fit) => ({ ...fit, report: fit.report && reportJson(fit.report) })) });

const reportJson = ({ skills, served: { reason: _, ...served }, seconds, ...report }: FitReport) => ({
  answers: report.answers,
  learners: report.learners,
  sampled_one_in: report.sampledOneIn,
  held_out_learners: report.heldOutLearners,
  skills: skills.length,
  skills_published: skills.filter(({ published }) => published).length,
  bkt: snakeCased(report.bkt),
  served: snakeCased(served),
  accuracy: snakeCased(report.accuracy),
  seconds: Number(seconds.toFixed(3)),
});

/** oldCoverage80 as old_coverage_80. */
const snakeCased = (figures: object): object =>
  Object.fromEntries(
    Object.entries(figures).map(([name, value]) => [
      name.replace(/[A-Z]|\d+/g, (part) => `_${part.toLowerCase()}`),
      value,
    ]),
  );

export function versionsText(tenant: string, versions: readonly KeptVersion[]): string {
  if (versions.length === 0) return `Tenant ${tenant} has no fitted version`;
  const lines = versions.map(
    ({ version, basedOn, publishedAt, inForce }) =>
      `  ${inForce ? '*' : ' '} ${version}  ${new Date(publishedAt).toISOString()}  after ${basedOn}`,
  );
  const none = versions.some(({ inForce }) => inForce) ? '' : '  * 0  before the first fit\n';
  return `Versions of tenant ${tenant}, * in force:\n${none}${lines.join('\n')}`;
}

export const versionsJson = (tenant: string, inForce: number, versions: readonly KeptVersion[]): string =>
  JSON.stringify({
    tenant,
    in_force: inForce,
    versions: versions.map(({ version, basedOn, publishedAt }) => ({
      version,
      based_on: basedOn,
      published_at: new Date(publishedAt).toISOString(),
    })),
  });
