package httpproto

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// reason names the class of a failure in one line. It quotes nothing that a
// server sent: reasons are logged, counted and compared.
func reason(err, cause error, at phase) string {
	if class := certificate(err); class != "" {
		return "tls: " + class
	}
	var (
		dns    *net.DNSError
		alert  tls.AlertError
		record tls.RecordHeaderError
	)
	text := err.Error()
	has := func(s string) bool { return strings.Contains(text, s) }
	switch {
	case errors.Is(cause, errSlow):
		return errSlow.Error()
	case errors.Is(cause, errTime):
		return errTime.Error() + " while " + at.String()
	case errors.Is(cause, errRefusedStream):
		return errRefusedStream.Error()
	case errors.Is(cause, errUnanswered), errors.Is(err, errUnanswered):
		return "connect: closed while " + at.String()
	case errors.Is(err, errDials):
		return "connect: too many connections for one visit"
	case errors.Is(err, errTunnel):
		return errTunnel.Error()
	case errors.Is(err, errConnBytes):
		return "http: more bytes than any answer needs"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "dns: no such host"
	case timeout(err):
		return "timeout: " + at.String()
	case errors.As(err, &dns):
		return "dns: lookup failed"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connect: refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.ENETDOWN):
		return "connect: unreachable"
	case errors.As(err, &record):
		return "tls: server does not speak TLS"
	case errors.As(err, &alert):
		// The texts of alerts are those of crypto/tls.
		return "tls: alert: " + strings.TrimPrefix(alert.Error(), "tls: ")
	case has("server gave HTTP response to HTTPS client"):
		return "tls: server does not speak TLS"
	case has("remote error: tls: "):
		_, class, _ := strings.Cut(text, "remote error: tls: ")
		return "tls: alert: " + class
	case has("protocol version"):
		return "tls: protocol version"
	case at == phaseTLS && !disconnect(err):
		return "tls: handshake failed"
	case has("headers exceeded"), has("header list larger"), has("1xx"):
		return "http: headers are too large"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connect: reset while " + at.String()
	case disconnect(err), has("server closed"), has("server sent GOAWAY"):
		return "connect: closed while " + at.String()
	case at < phaseTLS:
		return "connect: failed"
	case at == phaseBody:
		return "body: broken encoding"
	default:
		return "http: broken answer"
	}
}

func (p phase) String() string {
	return [...]string{"looking up", "connecting", "shaking hands", "waiting for the answer", "reading the body"}[p]
}

func timeout(err error) bool {
	var t net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

func disconnect(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// certificate returns what is wrong with a certificate; empty if err is about
// something else.
func certificate(err error) string {
	var (
		invalid   x509.CertificateInvalidError
		host      x509.HostnameError
		authority x509.UnknownAuthorityError
		verify    *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "certificate expired or not yet valid"
	case errors.As(err, &host):
		return "certificate is for another name"
	case errors.As(err, &authority):
		return "certificate of an unknown authority"
	case errors.As(err, &invalid), errors.As(err, &verify):
		return "certificate is invalid"
	}
	return ""
}
