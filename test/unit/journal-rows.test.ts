import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  encodeForecastRow,
  encodeGoalRow,
  encodeSkillRow,
  encodeWebhookRow,
  journalColumns,
} from '../../src/contracts/journal/journal.js';
import { servedForecast } from '../support/builders/journal-rows.js';
import { fc, forAll } from '../support/builders/properties.js';

const fieldsOf = (row: string): string[] => row.split('\t');

test('encodeGoalRow encodes a goal and its deletion', () => {
  const goal = { tenant: 't', userId: 'u', targetScore: 1200, targetDate: '2027-06-05' };
  assert.equal(encodeGoalRow(goal), 't\tu\t1200\t2027-06-05');
  assert.equal(encodeGoalRow({ ...goal, targetDate: null }), 't\tu\t1200\t\\N');
  assert.equal(encodeGoalRow({ ...goal, targetScore: null, targetDate: null }), 't\tu\t\\N\t\\N');
});

test('encodeSkillRow encodes a catalogue entry with and without its optional fields', () => {
  const parameters = { pInit: 0.3, pLearn: 0.1, pGuess: 0.2, pSlip: 0.05, pForget: 0.02 };
  assert.equal(
    encodeSkillRow({ tenant: 't', skillId: 's', name: 'Algebra', section: 'math', weight: 1.5, parameters }),
    't\ts\tAlgebra\tmath\t1.5\t0.3\t0.1\t0.2\t0.05\t0.02',
  );
  assert.equal(
    encodeSkillRow({ tenant: 't', skillId: 's', name: null, section: null, weight: 1, parameters: null }),
    't\ts\t\\N\t\t1\t\\N\t\\N\t\\N\t\\N\t\\N',
  );
});

test('encodeWebhookRow encodes an enabled and a disabled endpoint', () => {
  const place = { tenant: 't', id: 'wh_1', url: 'https://a.example/', createdAt: 5, updatedAt: 7 };
  const endpoint = { ...place, eventTypes: ['*' as const], description: null, disabledReason: null };
  assert.equal(encodeWebhookRow(endpoint), '7\tt\twh_1\thttps://a.example/\t*\t\\N\t\t5');
  const eventTypes = ['goal.reached' as const, 'goal.at_risk' as const];
  const off = { ...endpoint, eventTypes, description: 'a\tb', disabledReason: 'gone' as const };
  const row = '7\tt\twh_1\thttps://a.example/\tgoal.reached goal.at_risk\ta\\tb\tgone\t5';
  assert.equal(encodeWebhookRow(off), row);
});

test('encodeForecastRow has a field for each column in the order of the columns', () => {
  const fields = fieldsOf(encodeForecastRow(servedForecast()));
  assert.equal(fields.length, journalColumns.forecast_2.length);
  const named = journalColumns.forecast_2.map((name, i) => `${name}=${fields[i]}`);
  assert.equal(
    named.join(' '),
    [
      `made_at=${Date.UTC(2026, 0, 10, 15)} tenant=default user_id=learner-1 forecast_days=7 confidence_level=0.8`,
      'learner_seq=10 current_math=500 current_rw=520 current_total=1020',
      'predicted_math=510 predicted_rw=530 predicted_total=1040',
      'math_low=450 math_high=570 rw_low=470 rw_high=590 total_low=960 total_high=1120',
      'target_score=1200 goal_probability=0.25 model_version=3 tenant_model_version=7',
      'expected_share=0.7 share_sd=0.1 below_50=0.6 below_80=1.2 below_95=1.9',
      'above_50=0.7 above_80=1.3 above_95=2 calibration_below=1 calibration_above=1 accuracy_cases=0',
    ].join(' '),
  );
});

test('Journal rows keep every text within its field', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom(...'\\\t\n\r\0\b\fN') }),
  );
  forAll(text, text, (userId, name) => {
    const goal = fieldsOf(encodeGoalRow({ tenant: 't', userId, targetScore: 400, targetDate: null }));
    const skill = fieldsOf(
      encodeSkillRow({ tenant: 't', skillId: userId, name, section: 'rw', weight: 1, parameters: null }),
    );
    assert.deepEqual([goal.length, skill.length], [4, 10]);
    for (const field of [...goal, ...skill]) assert.doesNotMatch(field, /[\n\r\0\b\f]/);
    assert.notEqual(skill[2], '\\N', 'a name reads as missing');
  });
});
