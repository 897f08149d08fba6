{{- define "mirador.name" -}}
{{- if contains "mirador" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-mirador" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "mirador.selector" -}}
app.kubernetes.io/name: mirador
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "mirador.labels" -}}
{{ include "mirador.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "mirador.tlsSecret" -}}
{{ .Values.tls.secretName | default (printf "%s-tls" (include "mirador.name" .)) }}
{{- end }}

{{- define "mirador.serviceNames" -}}
{{- $name := include "mirador.name" . -}}
{{- $all := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) -}}
{{- concat $all (list (printf "%s.%s.svc.cluster.local" $name .Release.Namespace)) .Values.hosts | toJson -}}
{{- end }}

{{- /* What is mirrored: resources by API group. */ -}}
{{- define "mirador.resources" -}}
{{- $all := deepCopy .Values.mirror.resources -}}
{{- range $group, $names := .Values.mirror.extraResources -}}
{{- $_ := set $all $group (concat (default (list) (get $all $group)) $names | uniq) -}}
{{- end -}}
{{- if .Values.mirror.secrets -}}
{{- $_ := set $all "" (append (default (list) (get $all "")) "secrets" | uniq) -}}
{{- end -}}
{{- $all | toJson -}}
{{- end }}

{{- /* The flags of the daemon that a file can have. */ -}}
{{- define "mirador.config" -}}
{{- $include := list -}}
{{- range $group, $names := include "mirador.resources" . | fromJson -}}
{{- range $names -}}
{{- $include = append $include (printf "%s.%s" . $group) -}}
{{- end -}}
{{- end -}}
{{- $c := dict "listen" ":8443" "tls-cert" "/etc/mirador/tls/tls.crt" "tls-key" "/etc/mirador/tls/tls.key" -}}
{{- $_ := set $c "include" $include -}}
{{- $_ := set $c "authorization" .Values.authorization -}}
{{- $_ := set $c "access-file" "/etc/mirador/config/access.yaml" -}}
{{- $_ := set $c "log-format" "json" -}}
{{- if .Values.mirror.secrets }}{{ $_ := set $c "secrets" true }}{{ end -}}
{{- if .Values.home.enabled }}{{ $_ := set $c "home" .Values.home.name }}{{ end -}}
{{- with .Values.members -}}
{{- if .secrets }}{{ $_ := set $c "member-secrets" .secrets }}{{ end -}}
{{- if .profiles }}{{ $_ := set $c "member-profiles" true }}{{ end -}}
{{- if and .namespace (or .secrets .profiles) }}{{ $_ := set $c "member-namespace" .namespace }}{{ end -}}
{{- end -}}
{{- if .Values.kubeconfigs.secretName }}{{ $_ := set $c "folder" "/etc/mirador/clusters" }}{{ end -}}
{{- if .Values.authentication.tokenReview -}}
{{- $_ := set $c "authentication-token-review" .Values.home.name -}}
{{- end -}}
{{- if .Values.authentication.configuration -}}
{{- $_ := set $c "authentication-config" "/etc/mirador/config/authentication.yaml" -}}
{{- end -}}
{{- if .Values.authentication.adminTokenSecretName -}}
{{- $_ := set $c "token-file" "/etc/mirador/token/token" -}}
{{- end -}}
{{- if .Values.persistence.enabled -}}
{{- $_ := set $c "data" "/data/mirror" -}}
{{- $_ := set $c "data-max-bytes" (.Values.persistence.maxBytes | int64) -}}
{{- $_ := set $c "data-history" .Values.persistence.history -}}
{{- end -}}
{{- mergeOverwrite $c .Values.config | toYaml -}}
{{- end }}

{{- define "mirador.check" -}}
{{- if and .Values.authentication.tokenReview (not .Values.home.enabled) -}}
{{- fail "authentication.tokenReview asks the home cluster: set home.enabled, or give another way to authenticate" -}}
{{- end -}}
{{- $a := .Values.authentication -}}
{{- if not (or $a.tokenReview $a.configuration $a.adminTokenSecretName) -}}
{{- fail "nobody could use the daemon: set authentication.tokenReview, .configuration or .adminTokenSecretName" -}}
{{- end -}}
{{- end }}
