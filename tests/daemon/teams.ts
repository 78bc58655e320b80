// Teams that the tests of this folder run.

const exec = (run: string) => `agent: exec, commands: [{ name: c, run: ${JSON.stringify(run)} }]`

export const HELLO = `name: "@local/hello"
version: 1.0.0
inputs:
  - { name: who, type: string, default: world }
  - { name: times, type: number, default: 1 }
outputs:
  - { name: greeting, type: file, value: files/greet/hello.txt }
  - { name: times, type: number, value: "{{ inputs.times }}" }
phases:
  - name: greet
    agent: exec
    commands:
      - { name: hi, env: { WHO: "{{ inputs.who }}" }, run: 'echo "hello $WHO"; echo "hello $WHO" > "$CADRE_OUT/hello.txt"' }
`

/** Three levels: a map over a sub-team that has a team phase of its own. */
export const NESTED = {
  'team.yml': `name: "@local/top"
version: 1.0.0
phases:
  - { name: first, ${exec('true')} }
  - name: each
    type: map
    depends_on: [first]
    items: "{{ phases.first.data.commands }}"
    team: ./middle
  - { name: last, depends_on: [each], type: team, team: ./middle }
`,
  'middle/team.yml': `name: "@local/middle"
version: 1.0.0
phases:
  - { name: down, type: team, team: ../leaf }
`,
  'leaf/team.yml': `name: "@local/leaf"
version: 1.0.0
phases:
  - { name: work, ${exec('echo working')} }
`,
}

export const SLEEPS = `name: "@local/sleeps"
version: 1.0.0
phases:
  - { name: nap, ${exec('sleep 30')} }
`

export const FAILS = `name: "@local/fails"
version: 1.0.0
phases:
  - { name: break, ${exec('echo no such thing >&2; exit 4')} }
`

export const GATE = `name: "@local/gate"
version: 1.0.0
outputs:
  - { name: said, type: string, value: "{{ phases.ask.data.answer }}" }
phases:
  - name: ask
    type: gate
    review:
      prompt: Go on?
      reviewers: [any]
      inputs: [{ name: answer, type: string, required: true }]
`

/** Lines of the five: 3, 5, 7, 10 and 11. */
export const FIVE_MISTAKES = `name: "@local/wrong"
version: 1.0.0
colour: red
phases:
  - { name: Bad Name, agent: exec, commands: [{ name: c, run: "true" }] }
  - name: one
    agent: exce
  - name: two
    agent: exec
    depends_on: [three]
    timeout: 5
    commands: [{ name: c, run: "true" }]
`
