/** Statements of xAPI: one that is an answer, and those of the specification's appendix (Data, A). */
import { randomUUID } from 'node:crypto';

export type Json = { readonly [name: string]: unknown };

export const adl = (verb: string): Json => ({ id: `http://adlnet.gov/expapi/verbs/${verb}` });
export const skillIri = 'http://school.example/skills/algebra';

/** An answer of a learner that only this statement names. */
export const statement = (change: Json = {}): Json => ({
  id: randomUUID(),
  actor: { mbox: `mailto:${randomUUID()}@school.example` },
  verb: adl('answered'),
  object: { id: 'http://school.example/items/1' },
  result: { success: true, duration: 'PT12.6S' },
  context: { contextActivities: { parent: [{ id: skillIri }] } },
  ...change,
});

export const voiding = (id: unknown, change: Json = {}): Json => ({
  actor: { mbox: 'mailto:teacher@school.example' },
  verb: adl('voided'),
  object: { objectType: 'StatementRef', id },
  ...change,
});

const meetings = 'http://www.example.com/meetings';
const downes = {
  name: 'Andrew Downes',
  account: { homePage: 'http://www.example.com', name: '13936749' },
  objectType: 'Agent',
};

export const specified: readonly Json[] = [
  {
    id: 'fd41c918-b88b-4b20-a0a5-a4c32391aaa0',
    timestamp: '2015-11-18T12:17:00+00:00',
    actor: { objectType: 'Agent', name: 'Project Tin Can API', mbox: 'mailto:user@example.com' },
    verb: { id: 'http://example.com/xapi/verbs#sent-a-statement', display: { 'en-US': 'sent' } },
    object: {
      id: 'http://example.com/xapi/activity/simplestatement',
      definition: { name: { 'en-US': 'simple statement' }, description: { 'en-US': 'A simple statement.' } },
    },
  },
  {
    id: '7ccd3322-e1a5-411a-a67d-6a735c76f119',
    timestamp: '2015-12-18T12:17:00+00:00',
    actor: { objectType: 'Agent', name: 'Example Learner', mbox: 'mailto:example.learner@adlnet.gov' },
    verb: { id: 'http://adlnet.gov/expapi/verbs/attempted', display: { 'en-US': 'attempted' } },
    object: {
      id: 'http://example.adlnet.gov/xapi/example/simpleCBT',
      definition: { name: { 'en-US': 'simple CBT course' } },
    },
    result: { score: { scaled: 0.95 }, success: true, completion: true, duration: 'PT1234S' },
  },
  {
    id: '6690e6c9-3ef0-4ed3-8b37-7f3964730bee',
    actor: {
      name: 'Team PB',
      mbox: 'mailto:teampb@example.com',
      member: [
        downes,
        { name: 'Toby Nichols', openid: 'http://toby.openid.example.org/', objectType: 'Agent' },
        {
          name: 'Ena Hills',
          mbox_sha1sum: 'ebd31e95054c018b10727ccffd2ef2ec3a016ee9',
          objectType: 'Agent',
        },
      ],
      objectType: 'Group',
    },
    verb: {
      id: 'http://adlnet.gov/expapi/verbs/attended',
      display: { 'en-GB': 'attended', 'en-US': 'attended' },
    },
    result: {
      extensions: {
        'http://example.com/profiles/meetings/resultextensions/minuteslocation': 'X:\\minutes.one',
      },
      ...{ success: true, completion: true, response: 'We agreed.', duration: 'PT1H0M0S' },
    },
    context: {
      registration: 'ec531277-b57b-4c15-8d91-d292c5b2b8f7',
      contextActivities: {
        parent: [{ id: `${meetings}/series/267`, objectType: 'Activity' }],
        category: [
          {
            id: `${meetings}/categories/teammeeting`,
            objectType: 'Activity',
            definition: {
              ...{ name: { en: 'team meeting' }, description: { en: 'Regular team meetings.' } },
              type: 'http://example.com/expapi/activities/meetingcategory',
            },
          },
        ],
        other: [{ id: `${meetings}/occurances/34257`, objectType: 'Activity' }],
      },
      instructor: downes,
      team: { name: 'Team PB', mbox: 'mailto:teampb@example.com', objectType: 'Group' },
      ...{ platform: 'Example virtual meeting software', language: 'tlh' },
      statement: { objectType: 'StatementRef', id: '6690e6c9-3ef0-4ed3-8b37-7f3964730bee' },
    },
    timestamp: '2013-05-18T05:32:34.804+00:00',
    stored: '2013-05-18T05:32:34.804+00:00',
    authority: { account: { homePage: 'http://cloud.scorm.com/', name: 'anonymous' }, objectType: 'Agent' },
    version: '1.0.0',
    object: {
      id: `${meetings}/occurances/34534`,
      definition: {
        extensions: { 'http://example.com/profiles/meetings/room': { name: 'Kilby', id: null } },
        ...{ name: { 'en-GB': 'example meeting' }, type: 'http://adlnet.gov/expapi/activities/meeting' },
        moreInfo: 'http://virtualmeeting.example.com/345256',
      },
      objectType: 'Activity',
    },
  },
  // 2.4.4.3, a SubStatement.
  {
    actor: { objectType: 'Agent', mbox: 'mailto:test@example.com' },
    verb: { id: 'http://example.com/planned', display: { 'en-US': 'planned' } },
    object: {
      objectType: 'SubStatement',
      actor: { objectType: 'Agent', mbox: 'mailto:test@example.com' },
      verb: { id: 'http://example.com/visited', display: { 'en-US': 'will visit' } },
      object: { objectType: 'Activity', id: 'http://example.com/website' },
    },
  },
  // 2.4.4.3, a StatementRef.
  {
    actor: { objectType: 'Agent', mbox: 'mailto:test@example.com' },
    verb: { id: 'http://example.com/commented', display: { 'en-US': 'commented' } },
    object: { objectType: 'StatementRef', id: '8f87ccde-bb56-4c2e-ab83-44982ef22df0' },
    result: { response: 'Wow, nice work!' },
  },
];
