package sesraw

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
)

// AWS loads the SDK's configuration from AWS's own environment variables and profile files, changed by options. With an
// endpoint, which is a stand-in's URL, nothing of them is read, and requests are signed with credentials that are worth
// nothing.
func AWS(ctx context.Context, endpoint string, options ...func(*config.LoadOptions) error) (aws.Config, error) {
	if endpoint != "" {
		return aws.Config{
			Region: "us-east-1", BaseEndpoint: aws.String(endpoint),
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "standin", SecretAccessKey: "standin"}, nil
			}),
		}, nil
	}
	aw, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("AWS configuration: %w", err)
	}
	return aw, nil
}

// Profile is AWS with a profile and a region of its own, either of which may be "". The profile's region wins over AWS_REGION,
// which may be meant for others.
func Profile(ctx context.Context, endpoint, profile, region string) (aws.Config, error) {
	var options []func(*config.LoadOptions) error
	if profile != "" {
		options = append(options, config.WithSharedConfigProfile(profile))
	}
	aw, err := AWS(ctx, endpoint, options...)
	if err != nil {
		return aws.Config{}, err
	}
	if own := profileRegion(aw); profile != "" && own != "" {
		aw.Region = own
	}
	if region != "" {
		aw.Region = region
	}
	return aw, nil
}

func profileRegion(aw aws.Config) string {
	for _, source := range aw.ConfigSources {
		if shared, ok := source.(config.SharedConfig); ok {
			return shared.Region
		}
	}
	return ""
}

// ErrNoRegion is for a configuration that names no region.
var ErrNoRegion = errors.New("no AWS region: set AWS_REGION, or a profile with one")
