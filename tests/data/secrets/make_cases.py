"""Made-up secrets in the shapes people paste, printed as JSON.

{"cases": [[kind, context, secret, text]], "traps": [text]}. A case passes when no 12-character piece of the secret
survives redaction; a trap passes when it comes through unchanged.
Every value is random; none is a real credential. Usage: python make_cases.py [seed] > cases.json
"""

import base64
import json
import random
import string
import zlib

R = random.Random(20261129)
A = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
U = string.ascii_uppercase + string.digits
B64 = A + "+/"
B64U = A + "-_"


def s(n, c=A):
    return "".join(R.choice(c) for _ in range(n))


def b62(n):
    o = ""
    c = string.digits + string.ascii_uppercase + string.ascii_lowercase
    while n:
        n, r = divmod(n, 62)
        o = c[r] + o
    return o.rjust(6, "0")


def gh(p):
    b = s(30)
    return p + b + b62(zlib.crc32(b.encode()))


def pem(kind):
    body = "\n".join(s(64, B64) for _ in range(12))
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"


def jwt():
    def e(d):
        return base64.urlsafe_b64encode(json.dumps(d).encode()).decode().rstrip("=")

    return (
        e({"alg": "HS256", "typ": "JWT"})
        + "."
        + e({"sub": s(10), "name": "Jo " + s(5), "iat": 1700000000})
        + "."
        + s(43, B64U)
    )


def K():
    """kind -> (secret core, [contexts with {} for secret], env name)"""
    d = {}
    d["aws_akid"] = ("AKIA" + s(16, string.ascii_uppercase + "234567"), "AWS_ACCESS_KEY_ID")
    d["aws_secret"] = (s(40, B64), "AWS_SECRET_ACCESS_KEY")
    d["github_pat"] = (gh("ghp_"), "GITHUB_TOKEN")
    d["github_fine"] = ("github_pat_" + s(22) + "_" + s(59), "GH_TOKEN")
    d["github_oauth"] = (gh("gho_"), "GH_OAUTH")
    d["gitlab"] = ("glpat-" + s(20, B64U), "GITLAB_TOKEN")
    d["slack_bot"] = ("xoxb-" + s(12, string.digits) + "-" + s(13, string.digits) + "-" + s(24), "SLACK_BOT_TOKEN")
    d["slack_hook"] = ("https://hooks.slack.com/services/T" + s(10, U) + "/B" + s(10, U) + "/" + s(24), "SLACK_WEBHOOK")
    d["stripe"] = ("sk_live_" + s(24), "STRIPE_KEY")
    d["openai_proj"] = ("sk-proj-" + s(74, B64U) + "T3BlbkFJ" + s(74, B64U), "OPENAI_API_KEY")
    d["anthropic"] = ("sk-ant-api03-" + s(93, B64U) + "AA", "ANTHROPIC_API_KEY")
    d["google_api"] = ("AIza" + s(35, B64U), "GOOGLE_API_KEY")
    d["google_oauth"] = ("GOCSPX-" + s(28, B64U), "GOOGLE_CLIENT_SECRET")
    d["npm"] = ("npm_" + s(36), "NPM_TOKEN")
    d["pypi"] = ("pypi-AgEIcHlwaS5vcmc" + s(150, B64U), "TWINE_PASSWORD")
    d["hf"] = ("hf_" + s(34, string.ascii_letters), "HF_TOKEN")
    d["sendgrid"] = ("SG." + s(22, B64U) + "." + s(43, B64U), "SENDGRID_API_KEY")
    d["twilio"] = ("SK" + s(32, HEX), "TWILIO_API_KEY")
    d["discord"] = ("MT" + s(22) + "." + s(6) + "." + s(38, B64U), "DISCORD_TOKEN")
    d["telegram"] = (s(10, "123456789") + ":AA" + s(33, B64U), "TELEGRAM_BOT_TOKEN")
    d["digitalocean"] = ("dop_v1_" + s(64, HEX), "DO_TOKEN")
    d["vault"] = ("hvs." + s(95, B64U), "VAULT_TOKEN")
    d["age"] = ("AGE-SECRET-KEY-1" + s(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"), "AGE_KEY")
    d["azure_storage"] = (s(86, B64) + "==", "AZURE_STORAGE_KEY")
    d["jwt"] = (jwt(), "SESSION_JWT")
    d["generic_hex"] = (s(32, HEX), "ACME_API_KEY")
    d["generic_b64"] = (s(44), "INTERNAL_SERVICE_TOKEN")
    d["linear"] = ("lin_api_" + s(40), "LINEAR_API_KEY")
    d["databricks"] = ("dapi" + s(32, HEX), "DATABRICKS_TOKEN")
    d["groq"] = ("gsk_" + s(52), "GROQ_API_KEY")
    return d


def cases():
    out = []
    for k, (v, env) in K().items():
        out.append((k, "env", v, f"$ export {env}={v}\n$ make deploy"))
        out.append((k, "jsontxt", v, f'config: {{"{env.lower()}": "{v}", "region": "eu"}}'))
        out.append(
            (
                k,
                "json",
                v,
                json.dumps({"type": "tool_result", "content": f'config: {{"{env.lower()}": "{v}", "region": "eu"}}\n'}),
            )
        )
        if k == "aws_secret":
            out.append((k, "prose", v, f"my aws secret access key is {v} thanks"))
        elif k == "azure_storage":
            out.append(
                (
                    k,
                    "prose",
                    v,
                    f"DefaultEndpointsProtocol=https;AccountName=acct1;AccountKey={v};EndpointSuffix=core.windows.net",
                )
            )
        elif k in ("generic_hex", "generic_b64"):
            out.append((k, "prose", v, f"use this api key: {v} for the staging api"))
        else:
            out.append((k, "prose", v, f"ok so use {v} for now, I will rotate it later"))
    p = "hR8" + s(9) + "!x"
    for k, v, t in (
        ("url_pg", p.replace("!", "9"), "psql postgres://app_user:{}@db.internal.example:5432/prod"),
        ("url_mongo", s(14), "MONGO=mongodb+srv://svc:{}@cluster0.ab1cd.mongodb.net/x"),
        ("url_redis", s(16), "redis://:{}@10.0.0.4:6379/0"),
        ("url_https", s(20), "git clone https://oauth2:{}@git.example.com/a/b.git"),
        ("bearer", s(40), 'curl -H "Authorization: Bearer {}" https://api.example.com/v1'),
        ("basic", base64.b64encode(("user:" + s(14)).encode()).decode(), "Authorization: Basic {}"),
        ("x_api_key", s(32), "curl -H 'X-Api-Key: {}' https://api.example.com"),
        ("cookie", s(48), "Cookie: sessionid={}; theme=dark"),
        ("password_py", p, 'conn = connect(host="db", password="{}")'),
        ("password_yaml", p, "  db_password: '{}'"),
        ("password_cli", s(14), "mysql -u root -p{} prod"),
        ("password_prose", p, "the admin password is {} on staging"),
        ("password_env", p, "DB_PASSWORD={}"),
        ("netrc", s(16), "machine api.example.com login bob password {}"),
        ("npmrc", s(36), "//registry.example.com/:_authToken={}"),
        ("curl_user", s(14), "curl -u admin:{} https://x.example"),
        (
            "docker_auth",
            base64.b64encode(("u:" + s(20)).encode()).decode(),
            '{{"auths":{{"ghcr.io":{{"auth":"{}"}}}}}}',
        ),
        ("sas", s(43, B64) + "%3D", "https://acct.blob.core.windows.net/c?sv=2022-11-02&sig={}&se=2026"),
        ("presigned", s(64, HEX), "https://b.s3.amazonaws.com/k?X-Amz-Credential=abc&X-Amz-Signature={}"),
        ("django_secret", s(50), "SECRET_KEY = 'django-insecure-{}'"),
        ("kube", s(400, B64), "    client-key-data: {}"),
    ):
        out.append((k, "native", v, t.format(v)))
    for kind in ("RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY"):
        x = pem(kind)
        core = x.split("\n")[5]
        out.append(("pem_" + kind.split()[0].lower(), "raw", core, "$ cat key.pem\n" + x + "\n$ ls"))
        out.append(
            ("pem_" + kind.split()[0].lower(), "json", core, json.dumps({"content": "$ cat key.pem\n" + x + "\n"}))
        )
    x = pem("RSA PRIVATE KEY")
    numbered = "\n".join(f"{i:6}→{line}" for i, line in enumerate(x.split("\n"), 1))
    out.append(("pem_numbered", "raw", x.split("\n")[5], "Read key.pem:\n" + numbered))
    x = pem("RSA PRIVATE KEY").split("\n")
    out.append(("pem_truncated", "raw", x[5], "\n".join(x[:8]) + "\n... (output truncated)"))
    out.append(("split_line", "raw", "ghp_" + s(36), "token is gh\u200bp_x")) if 0 else None
    return out


TRAPS = [
    "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b\nAuthor: A",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    '"integrity": "sha512-' + s(86, B64) + '=="',
    "request id 550e8400-e29b-41d4-a716-446655440000 took 3ms",
    "password = getpass.getpass()",
    "token = request.headers['Authorization']",
    "api_key = os.environ['OPENAI_API_KEY']",
    "export OPENAI_API_KEY=$OPENAI_API_KEY",
    "OPENAI_API_KEY=your-api-key-here",
    "AWS_SECRET_ACCESS_KEY=${AWS_SECRET_ACCESS_KEY}",
    "AKIAIOSFODNN7EXAMPLE is the docs example",
    "const token = await getToken(userId)",
    "def reset_password(self, password: str) -> None:",
    "the password field is required",
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "postgres://user:password@localhost:5432/db",
    "postgres://localhost/db",
    "tokenizer = AutoTokenizer.from_pretrained('bert-base-uncased')",
    "max_tokens=4096, token_count=128331",
    "id: 01HZX3Q8Y5V6W7R8S9T0ABCDEF",
    "arn:aws:iam::123456789012:role/Deploy",
    'etag: "33a64df551425fcc55e4d42a148795d9f25f89d4"',
    "data:image/png;base64," + s(400, B64),
    "Build 2026.11.29-a1b2c3d4e5f6 deployed",
    "client_secret: ********",
    "key = 'user:profile:settings:theme'",
    'secret_name = "prod/db/password"',
    "KEYS = ['alpha','beta','gamma']",
    "passwordless login enabled",
    "SSH key fingerprint SHA256:" + s(43, B64),
    "ssh-rsa AAAAB3NzaC1yc2E" + s(300, B64) + " bob@host",
    "-----BEGIN CERTIFICATE-----\n" + s(64, B64) + "\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n" + s(64, B64) + "\n-----END PUBLIC KEY-----",
    "test_api_key_rotation_policy_is_enforced",
    "InvalidTokenError: token expired at 2026-01-01",
    "toolu_01" + s(22),
    "msg_01" + s(22),
    "req_011" + s(21),
    '"uuid":"7c9e6679-7425-40de-944b-e07fc1f90ae7","parentUuid":"0f8fad5b-d9cb-469f-a165-70867728950e"',
    "call_" + s(24),
    "rowid=12345678901234567890",
    "sqlite_source_id 2026-10-16 14:45:20 555e07ef33f69a0957d24d8e555b702464a131d6f1607f4c3c1e4551e8e6ca76",
    "KB-4156 fixed in v2.3 on internal-hbr-2291.pineapple.example",
    "secret sauce: we cache the embeddings",
    "csrf_token missing from form",
    "https://example.com/?token=abc",
    "npm ERR! code E401",
    "PASSWORD_MIN_LENGTH = 12",
    "auth: { type: 'oauth2', flow: 'pkce' }",
]
if __name__ == "__main__":
    import sys

    R.seed(int(sys.argv[1]) if len(sys.argv) > 1 else 20261129)
    json.dump({"cases": cases(), "traps": TRAPS}, sys.stdout)
